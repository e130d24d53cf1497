// Which thing of this frame is which of the last: an id for each. As tasks/tracking.py of the engine.

const REMEMBERED_MS = 1000;
const FARTHEST = 0.8; // of a box's side: how far a thing may be from where it is expected
const LARGEST_CHANGE = 2; // of a side, between two frames
const INERTIA = 0.5; // of the speed that a track had, in its new one

/** Ids of the things in a film, counted from 1. */
export class Tracker {
  tracks = [];
  next = 1;
  now = -Infinity;

  /** An id for each box of the frame at `now`, in milliseconds; only boxes of one kind are of one thing. */
  ids(boxes, now, kinds = []) {
    if (now < this.now) this.tracks = [];
    this.now = now;
    this.tracks = this.tracks.filter((track) => now - track.time <= REMEMBERED_MS);
    const places = boxes.map(({ left, top, width, height }) => ({
      x: left + width / 2, y: top + height / 2, side: Math.max((width + height) / 2, 1e-6),
    }));
    const pairs = places.flatMap((place, i) => this.tracks.flatMap((track, j) => {
      const distance = track.kind === kinds[i] ? distanceOf(track, place, now) : Infinity;
      return distance <= FARTHEST ? [[distance, i, j]] : [];
    })).sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    const joined = new Map();
    const taken = new Set();
    for (const [, i, j] of pairs) {
      if (joined.has(i) || taken.has(j)) continue;
      joined.set(i, this.tracks[j]);
      taken.add(j);
    }
    return places.map((place, i) => move(joined.get(i) ?? this.begun(place, kinds[i], now), place, now).id);
  }

  begun(place, kind, time) {
    const track = { ...place, id: this.next++, kind, time, across: 0, down: 0 };
    this.tracks.push(track);
    return track;
  }

  /** Forgets all things; their ids are not given again. */
  reset() {
    [this.tracks, this.now] = [[], -Infinity];
  }
}

/** From where a track is expected now, in sides of the box. */
function distanceOf(track, { x, y, side }, now) {
  if (Math.max(side, track.side) > LARGEST_CHANGE * Math.min(side, track.side)) return Infinity;
  const spent = now - track.time;
  return Math.hypot(track.x + track.across * spent - x, track.y + track.down * spent - y) / side;
}

function move(track, place, now) {
  const spent = now - track.time;
  if (spent > 0) {
    track.across = INERTIA * track.across + ((1 - INERTIA) * (place.x - track.x)) / spent;
    track.down = INERTIA * track.down + ((1 - INERTIA) * (place.y - track.y)) / spent;
  }
  return Object.assign(track, place, { time: now });
}
