// Errors that a page can show by their code (troubles.js), with a readable message.

/** An error with a `code`. */
export class CodedError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
