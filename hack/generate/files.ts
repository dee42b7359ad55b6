import { apiReference } from './api-reference.ts';
import { crdFiles } from './crds/all.ts';
import { flagsReference } from './flags-reference.ts';

/** All generated files of the project: path from its root → text. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ...crdFiles(),
    ['docs/reference/api.md', await apiReference()],
    ['docs/reference/flags.md', await flagsReference()],
  ]);
}
