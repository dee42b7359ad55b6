import { registerHooks } from 'node:module';

import { apply, type Edit } from '../mutations/tree/edit.ts';

/** What tells a process of a defect that it is to run with; see SourceChange. */
export const DEFECT_VARIABLE = 'MACHINIST_SIMULATED_DEFECT';

/** A change of one source file, before it is loaded. */
export interface SourceChange {
  /** Of the known defect. */
  readonly name: string;
  /** Its whole path. */
  readonly url: string;
  readonly edit: Edit;
}

/** Loads that file with that change from now on. */
export function putIn({ url, edit }: Pick<SourceChange, 'url' | 'edit'>): void {
  registerHooks({
    load(given, context, nextLoad) {
      const loaded = nextLoad(given, context);
      if (given !== url) return loaded;
      const { source } = loaded;
      if (source === undefined || source === null) throw new Error(`${url} has no source`);
      return {
        ...loaded,
        source: apply(typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString(), edit),
      };
    },
  });
}
