import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';

import { type Manifest, parseManifests } from '../../hack/control-plane/apply.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** A kustomization.yaml, as far as it is read here. */
export interface Kustomization {
  readonly resources: readonly string[];
  readonly components: readonly string[];
  readonly [member: string]: unknown;
}

/**
 * What `kubectl apply -k` would apply for a kustomization of these resources and components, by their paths from the root of the checkout, and
 * with a JSON patch of the Deployment.
 */
export async function kustomize(
  resources: readonly string[],
  components: readonly string[],
  patch?: string,
): Promise<Manifest[]> {
  const patches = patch === undefined ? [] : [{ patch, target: { kind: 'Deployment' } }];
  const folder = await mkdtemp(join(tmpdir(), 'machinist-kustomize-'));
  return await built(folder, { resources, components, patches });
}

/** What it would apply for this kustomization in `folder`, with paths from the root of the checkout. The folder is removed. */
export async function built(folder: string, given: Kustomization): Promise<Manifest[]> {
  const fromFolder = (path: string): string => relative(folder, join(ROOT, path));
  try {
    const { resources, components, ...more } = given;
    const kustomization = { resources: resources.map(fromFolder), components: components.map(fromFolder), ...more };
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    const { path: kubectl } = await resolveProgram('kubectl');
    const { stdout } = await promisify(execFile)(kubectl, ['kustomize', folder], { maxBuffer: 16e6 });
    return parseManifests(stdout);
  } finally {
    await rm(folder, { recursive: true });
  }
}
