import { join } from 'node:path';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';

/** `own`: crds/ of this project; `original`: the definitions that Gardener ships, which prune what we added. */
export type CrdSet = 'own' | 'original';

/** Where the definitions of a set are. */
export const CRD_FOLDERS: Readonly<Record<CrdSet, string>> = {
  own: join(import.meta.dirname, '../../crds'),
  original: join(import.meta.dirname, '../crds-original'),
};

/** Applies a set of CustomResourceDefinitions and resolves when they are served. */
export async function applyCrds(connection: Connection, set: CrdSet = 'own'): Promise<void> {
  const api = connection.api();
  try {
    await applyManifests(api, readManifests(CRD_FOLDERS[set]));
  } finally {
    await api.close();
  }
}
