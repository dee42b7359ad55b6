import type { MutantKind } from './tree/edit.ts';
import type { Mutant } from './tree/mutants.ts';

/** Why a mutant that the tool makes cannot, or need not, be noticed. */
export interface Explanation {
  /** Name of the function, method or constant that it is in. */
  readonly in: string;
  readonly kind: MutantKind;
  /** What is changed; any white space stands for any other. All such mutants of the place are explained. */
  readonly from: string;
  /** What is put in its place, where several changes are made of the same. */
  readonly to?: string;
  readonly why: string;
}

/** Survivors that somebody has looked at. A unit test fails when there is no such mutant any more. */
export const EXPLAINED: readonly Explanation[] = [
  {
    in: 'BY_WISH',
    kind: 'condition',
    from: 'isKept(machine, nowMs) ? 1 : 0',
    why: 'Two later criteria give preserved machines a higher rank too.',
  },
  {
    in: 'isMarkedForDeletion',
    kind: 'statement',
    from: 'if (scalerChangedAtMs === undefined || markedMs === undefined) return false;',
    why: 'The comparison below is false when one of them is undefined.',
  },
  {
    in: 'isMarkedForDeletion',
    kind: 'operand',
    from: 'scalerChangedAtMs === undefined ||',
    why: 'The comparison below is false when it is undefined.',
  },
  {
    in: 'isMarkedForDeletion',
    kind: 'operand',
    from: '|| markedMs === undefined',
    why: 'The comparison below is false when it is undefined.',
  },
];

/** The explanation of a mutant, if it has one. */
export function explanationOf(
  mutant: Pick<Mutant, 'place' | 'kind' | 'from' | 'text'>,
  explanations: readonly Explanation[],
): Explanation | undefined {
  return explanations.find(
    ({ in: place, kind, from, to }) =>
      place === mutant.place &&
      kind === mutant.kind &&
      wordsOf(from) === wordsOf(mutant.from) &&
      (to === undefined || wordsOf(to) === wordsOf(mutant.text)),
  );
}

function wordsOf(text: string): string {
  return text.trim().split(/\s+/).join(' ');
}
