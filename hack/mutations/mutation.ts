/** One small change of the source that a test must notice. A row of list/. */
export interface Mutation {
  /** From the root of the checkout. */
  readonly file: string;
  /** Occurs exactly once in the file; any white space in it stands for any other. */
  readonly from: string;
  /** What stands there instead. */
  readonly to: string;
  /** What goes wrong for a user with that change, in one line. */
  readonly why: string;
  /** Test files of one level; at least one of their tests must fail. Their folder says which level it is. */
  readonly tests: readonly string[];
  /** Part of the title of the tests that must fail, above the unit level, where a whole file takes minutes. */
  readonly only?: string;
  /** Why no test can, or need, notice it. A row without fails the run when its mutation survives. */
  readonly survives?: string;
}

/** The level of tests that must notice it. */
export type MutationLevel = 'unit' | 'integration' | 'faults';

/** A row of the list that does not fit the source. The message says what to do about it. */
export class MisfitError extends Error {
  override readonly name = 'MisfitError';
}

/** The level of a row, by the folder of its tests. */
export function levelOf({ tests }: Pick<Mutation, 'tests'>): MutationLevel {
  const [first = ''] = tests;
  if (first.startsWith('test/integration/')) return 'integration';
  return first.startsWith('test/faults/') ? 'faults' : 'unit';
}

/** The source with the mutation in it. Throws MisfitError when it is not clear where it belongs. */
export function mutate(source: string, { file, from, to }: Pick<Mutation, 'file' | 'from' | 'to'>): string {
  const places = [...source.matchAll(patternOf(from))];
  const [place] = places;
  if (place === undefined) {
    throw new MisfitError(
      `${file} does not contain ${JSON.stringify(from)} any more: write into that row of hack/mutations/list how the decision reads now, or remove the row if the decision is gone`,
    );
  }
  if (places.length > 1) {
    throw new MisfitError(
      `${file} contains ${JSON.stringify(from)} ${places.length} times: add more of the text around it to that row of hack/mutations/list`,
    );
  }
  const mutated = source.slice(0, place.index) + to + source.slice(place.index + place[0].length);
  if (mutated !== source) return mutated;
  throw new MisfitError(`the row ${JSON.stringify(from)} of ${file} in hack/mutations/list changes nothing`);
}

/** Formatting may break lines elsewhere: all white space is alike. */
function patternOf(text: string): RegExp {
  const words = text.trim().split(/\s+/);
  return new RegExp(
    words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join(String.raw`\s+`),
    'g',
  );
}
