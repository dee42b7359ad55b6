import { placesOf } from './tree/places.ts';
import { apply, type Edit } from './tree/edit.ts';
import { parse } from './tree/syntax.ts';

/** One small change of the source that a test must notice, and a tool cannot make. A row of list/. */
export interface Mutation {
  /** Name of the function, method or constant that it is in, such as `launch` or `DriverCalls.#start`. */
  readonly in: string;
  /** Occurs exactly once in what has that name, wherever it is; any white space stands for any other. */
  readonly from: string;
  /** What is put in its place. */
  readonly to: string;
  /** What goes wrong for a user with that change, in one line. */
  readonly why: string;
  /** Names of unit test files that notice it, without their folders; only where those nearest to the code do not. */
  readonly tests?: readonly string[];
  /** The test above the unit level that must fail, and a part of the titles that are run of it; otherwise a unit test must. */
  readonly above?: { readonly file: string; readonly only?: string };
  /** Why no test can, or need, notice it. A row without fails the run when its mutation survives. */
  readonly survives?: string;
}

/** The level of tests that must notice it. */
export type MutationLevel = 'unit' | 'integration' | 'faults';

/** A row of the list that does not fit the source. The message says what to do about it. */
export class MisfitError extends Error {
  override readonly name = 'MisfitError';
}

/** The level of a row, by the folder of its test. */
export function levelOf({ above }: Pick<Mutation, 'above'>): MutationLevel {
  if (above === undefined) return 'unit';
  return above.file.startsWith('test/faults/') ? 'faults' : 'integration';
}

/** Where a mutation belongs. */
export interface Located {
  /** From the root of the checkout. */
  readonly file: string;
  readonly edit: Edit;
}

/** A named piece of a file. */
interface Piece {
  readonly file: string;
  readonly source: string;
  readonly start: number;
  readonly end: number;
}

/** All named functions, methods and constants of some sources. */
export class Pieces {
  readonly #byName = new Map<string, Piece[]>();

  constructor(sources: Iterable<readonly [file: string, source: string]>) {
    for (const [file, source] of sources) {
      for (const { name, start, end } of placesOf(parse(file, source))) {
        this.#byName.set(name, [...(this.#byName.get(name) ?? []), { file, source, start, end }]);
      }
    }
  }

  /** Where a mutation belongs. Throws MisfitError when that is not clear. */
  locate({ in: name, from, to }: Pick<Mutation, 'in' | 'from' | 'to'>): Located {
    const pieces = this.#byName.get(name) ?? [];
    if (pieces.length === 0) {
      throw new MisfitError(
        `nothing is called ${name} any more: write into that row of hack/mutations/list what it is called now, or remove the row if the decision is gone`,
      );
    }
    const places = pieces.flatMap((piece) => placesIn(piece, from));
    const [place] = places;
    if (place === undefined) {
      throw new MisfitError(
        `${name} does not contain ${JSON.stringify(from)} any more: write into that row of hack/mutations/list how the decision reads now, or remove the row if the decision is gone`,
      );
    }
    if (places.length > 1) {
      throw new MisfitError(
        `${name} contains ${JSON.stringify(from)} ${places.length} times: add more of the text around it to that row of hack/mutations/list`,
      );
    }
    const { file, source, start, end } = place;
    const edit = { start, end, text: to };
    if (apply(source, edit) !== source) return { file, edit };
    throw new MisfitError(`the row ${JSON.stringify(from)} of ${name} in hack/mutations/list changes nothing`);
  }
}

function placesIn({ file, source, start, end }: Piece, from: string): readonly Piece[] {
  return [...source.slice(start, end).matchAll(patternOf(from))].map((place) => {
    const at = start + place.index;
    return { file, source, start: at, end: at + place[0].length };
  });
}

/** Formatting may break lines elsewhere: all white space is alike. */
function patternOf(text: string): RegExp {
  const words = text.trim().split(/\s+/);
  return new RegExp(
    words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join(String.raw`\s+`),
    'g',
  );
}
