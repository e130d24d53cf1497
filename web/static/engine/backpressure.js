// How many pictures may be in flight. Two overlap where the engine waits for a GPU: one is prepared while the other is
// read back. Where both need the same processor each takes longer; that is measured, and then one goes at a time.

const FIRST_SINGLE = 8; // pictures that go one at a time at first, until it is known how long one takes
const SINGLE_AGAIN = 64; // pictures that go one at a time after two at once were slow
const SLOWER = 1.5; // two at once may take this many times as long as one

/** Decides how many pictures may be in flight, from how long they took. */
export class Backpressure {
  #overlaps;
  #remaining = FIRST_SINGLE; // pictures to come that go one at a time
  #single = Infinity; // milliseconds of a quick picture with no other in flight

  /** `overlaps`: whether two at once can be of use at all. */
  constructor(overlaps = false) {
    this.#overlaps = overlaps;
  }

  /** Pictures that may be in flight now. */
  get limit() {
    return this.#overlaps && this.#remaining === 0 ? 2 : 1;
  }

  /** Notes that a picture was answered after so many milliseconds; `single`: no other was in flight meanwhile. */
  landed(ms, single) {
    if (single) {
      this.#single = Math.min(ms, 1.02 * this.#single); // machines get slower, too
      this.#remaining = Math.max(0, this.#remaining - 1);
    } else if (ms > SLOWER * this.#single) {
      this.#remaining = SINGLE_AGAIN;
    }
  }
}
