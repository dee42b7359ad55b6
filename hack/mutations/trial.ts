import { readFileSync } from 'node:fs';
import path from 'node:path';

import { explanationOf, type Explanation } from './explained.ts';
import type { Mutation, Pieces } from './mutation.ts';
import type { Edit } from './tree/edit.ts';
import { mutantsOf, type Mutant } from './tree/mutants.ts';

/** A change of one file that a test should notice. */
export interface Trial {
  /** From the root of the checkout. */
  readonly file: string;
  readonly edit: Edit;
  /** Offset of what must be run for the change to make a difference; where it begins otherwise. */
  readonly at?: number;
  /** What is changed, or what goes wrong with it, in one line. */
  readonly title: string;
  /** Whether the run fails when it survives: it is a row of the list. */
  readonly isRow: boolean;
  /** Why no test can, or need, notice it. The run fails when one does. */
  readonly survives?: string;
  /** Names of test files that are tried before those nearest to the code. */
  readonly tests?: readonly string[];
  /** The test above the unit level that must notice it; else any unit test that runs the code. */
  readonly above?: { readonly file: string; readonly only?: string };
}

/** What is tried for a row. */
export function trialOf(row: Mutation, pieces: Pieces): Trial {
  const { why, tests, above, survives } = row;
  return {
    ...pieces.locate(row),
    title: `${row.in}: ${why}`,
    isRow: true,
    ...(tests === undefined ? {} : { tests }),
    ...(above === undefined ? {} : { above }),
    ...(survives === undefined ? {} : { survives }),
  };
}

/** What is tried of a file: all that the tool makes of the places that are asked for. */
export function trialsOf(
  root: string,
  file: string,
  explanations: readonly Explanation[],
  isAsked: (mutant: Mutant) => boolean = () => true,
): readonly Trial[] {
  const source = readFileSync(path.join(root, file), 'utf8');
  return mutantsOf(file, source)
    .filter(isAsked)
    .map((mutant) => {
      const survives = explanationOf(mutant, explanations)?.why;
      return {
        file,
        edit: mutant,
        at: mutant.at,
        title: titleOf(mutant, source),
        isRow: false,
        ...(survives === undefined ? {} : { survives }),
      };
    });
}

function titleOf({ place, kind, start, end, text }: Mutant, source: string): string {
  const line = source.slice(0, start).split('\n').length;
  const from = shortened(source.slice(start, end));
  const what = text === '' ? `without ${from}` : `${from} → ${shortened(text)}`;
  return `${place} (line ${line}), ${kind}: ${what}`;
}

function shortened(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
}
