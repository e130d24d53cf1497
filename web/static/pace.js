// How many pictures the engine has at once. Two overlap where it waits for a GPU: one is prepared while the other is
// read back. Where both want the same processor they only get later, so that is noticed and left.

const ALONE_FIRST = 8; // pictures, until it is known how long one takes
const ALONE_AGAIN = 64; // pictures, after two at once were slow
const SLOWER = 1.5; // two at once may take this many times as long as one alone

export class Pace {
  #overlaps;
  #rest = ALONE_FIRST; // pictures to come that go alone
  #alone = Infinity; // milliseconds of a quick picture that went alone

  /** `overlaps`: whether two at once can be of use at all. */
  constructor(overlaps = false) {
    this.#overlaps = overlaps;
  }

  /** Pictures that may fly now. */
  get most() {
    return this.#overlaps && this.#rest === 0 ? 2 : 1;
  }

  /** A picture came back after so long; `alone`: no other flew meanwhile. */
  landed(ms, alone) {
    if (alone) {
      this.#alone = Math.min(ms, 1.02 * this.#alone); // machines get slower, too
      this.#rest = Math.max(0, this.#rest - 1);
    } else if (ms > SLOWER * this.#alone) {
      this.#rest = ALONE_AGAIN;
    }
  }
}
