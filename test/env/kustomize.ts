import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';

import { type Manifest, parseManifests } from '../../hack/control-plane/apply.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * What `kubectl apply -k` would apply for a kustomization of these resources and components, by their paths from the root of the checkout, and
 * with a JSON patch of the Deployment.
 */
export async function kustomize(
  resources: readonly string[],
  components: readonly string[],
  patch?: string,
): Promise<Manifest[]> {
  const folder = await mkdtemp(join(tmpdir(), 'machinist-kustomize-'));
  const fromFolder = (path: string): string => relative(folder, join(ROOT, path));
  try {
    const patches = patch === undefined ? [] : [{ patch, target: { kind: 'Deployment' } }];
    const kustomization = { resources: resources.map(fromFolder), components: components.map(fromFolder), patches };
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    const { path: kubectl } = await resolveProgram('kubectl');
    const { stdout } = await promisify(execFile)(kubectl, ['kustomize', folder], { maxBuffer: 16e6 });
    return parseManifests(stdout);
  } finally {
    await rm(folder, { recursive: true });
  }
}
