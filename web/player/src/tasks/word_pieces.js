// WordPiece: text as the numbers of pieces of words, by the rules of BERT's uncased models. As tasks/word_pieces.py.

const LONGEST = 100; // characters; a longer word is unknown
const DROPPED = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Mn}\ufffd]/u;
// Punctuation, the other marks of ASCII, and Chinese characters as BERT counts them: each a word.
const ALONE = /[\p{P}$+<=>^`|~\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{f900}-\u{faff}\u{2f800}-\u{2fa1f}]/u;

/** The words of a text: in lower case, without accents; each punctuation mark and Chinese character is one. */
export function wordsOf(text) {
  const letters = Array.from(text.normalize("NFD"), (letter) => {
    if ("\t\n\r".includes(letter)) return " ";
    if (DROPPED.test(letter)) return "";
    if (/\p{Z}/u.test(letter)) return " ";
    return ALONE.test(letter) ? ` ${letter} ` : letter.toLowerCase();
  });
  return letters.join("").split(" ").filter(Boolean);
}

export class WordPieces {
  /** `vocabulary` has a piece in each line; its number is that of the line. Pieces inside of words begin with ##. */
  constructor(vocabulary) {
    this.numbers = new Map(vocabulary.split("\n").map((piece, number) => [piece.replace(/\r+$/, ""), number]));
    this.padding = this.numbers.get("[PAD]");
  }

  /** The numbers of a text's pieces between the markers of its ends, `most` in all; the rest is left out. */
  encode(text, most) {
    const numbers = [this.numbers.get("[CLS]")];
    for (const word of wordsOf(text)) {
      numbers.push(...this.pieces(Array.from(word)));
      if (numbers.length >= most) break;
    }
    return [...numbers.slice(0, most - 1), this.numbers.get("[SEP]")];
  }

  /** The longest piece first, then the longest of the rest; a word that cannot be put together is unknown. */
  pieces(letters) {
    const unknown = [this.numbers.get("[UNK]")];
    if (letters.length > LONGEST) return unknown;
    const found = [];
    for (let start = 0, end = letters.length; start < letters.length; ) {
      const number = this.numbers.get((start ? "##" : "") + letters.slice(start, end).join(""));
      if (number !== undefined) {
        found.push(number);
        [start, end] = [end, letters.length];
      } else if (--end === start) return unknown;
    }
    return found;
  }
}
