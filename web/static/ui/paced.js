/** A function that does `work` when it is called, but not again within `pauseMs`: calls meanwhile are one call at their end. */
export function paced(pauseMs, work) {
  let waits = false;
  let calledAgain = false;
  return function call() {
    if (waits) {
      calledAgain = true;
      return;
    }
    [waits, calledAgain] = [true, false];
    setTimeout(() => {
      waits = false;
      if (calledAgain) call();
    }, pauseMs);
    work();
  };
}
