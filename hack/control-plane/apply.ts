import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { loadAll } from 'js-yaml';

import type { Api, ApiAnswer } from './api.ts';
import { ControlPlaneError } from './error.ts';

const FIELD_MANAGER = 'machinist-control-plane';
const ESTABLISHED_DEADLINE_MS = 15_000;
const POLL_MS = 30;

/** Any object, as it stands in a manifest. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

/** All objects of the YAML files in a folder, by file name; what kustomize makes of them is left out. */
export function readManifests(folder: string): Manifest[] {
  const files = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name) && name !== 'kustomization.yaml');
  return files.toSorted().flatMap((name) => parseManifests(readFileSync(join(folder, name), 'utf8')));
}

/** All objects of a YAML text; empty documents are left out. Throws on YAML that is not well formed. */
export function parseManifests(yaml: string): Manifest[] {
  const documents = loadAll(yaml) as (Manifest | null)[]; // manifests by contract; the server refuses anything else
  return documents.filter((document) => document !== null);
}

/**
 * Applies objects server-side, CustomResourceDefinitions first; resolves when the latter are served. Repeating it changes
 * nothing. Throws ControlPlaneError `apply-failed` with the server's words.
 */
export async function applyManifests(api: Api, manifests: readonly Manifest[]): Promise<void> {
  const definitions = manifests.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const others = manifests.filter(({ kind }) => kind !== 'CustomResourceDefinition');
  const collections = new Map<string, Promise<Collection>>();
  await Promise.all(definitions.map((manifest) => apply(api, manifest, collections)));
  await Promise.all(definitions.map((manifest) => waitUntilServed(api, manifest)));
  for (const manifest of others) await apply(api, manifest, collections);
}

interface Collection {
  readonly root: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

async function apply(api: Api, manifest: Manifest, collections: Map<string, Promise<Collection>>): Promise<void> {
  const key = `${manifest.apiVersion}/${manifest.kind}`;
  const known = collections.get(key) ?? findCollection(api, manifest);
  collections.set(key, known);
  const { root, plural, namespaced } = await known;
  const { name, namespace = 'default' } = manifest.metadata;
  const scope = namespaced ? `/namespaces/${namespace}` : '';
  const answer = await api.request(
    `${root}${scope}/${plural}/${name}?fieldManager=${FIELD_MANAGER}&force=true&fieldValidation=Strict`,
    { method: 'PATCH', body: manifest, contentType: 'application/apply-patch+yaml' },
  );
  if (answer.status >= 300) throw refused(`applying ${manifest.kind} ${name}`, answer);
}

async function findCollection(api: Api, { apiVersion, kind }: Manifest): Promise<Collection> {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const answer = await api.request(root);
  if (answer.status !== 200) throw refused(`looking for ${kind} in ${apiVersion}`, answer);
  const { resources } = answer.body as { resources: { name: string; kind: string; namespaced: boolean }[] };
  const found = resources.find((r) => r.kind === kind && !r.name.includes('/'));
  if (found === undefined) throw new ControlPlaneError('apply-failed', `${apiVersion} has no kind ${kind}.`);
  return { root, plural: found.name, namespaced: found.namespaced };
}

interface Definition {
  readonly spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean }[] };
  readonly status?: { conditions?: { type: string; status: string }[] };
}

/** Established, and each served version answers: between the two the server says 404 for a moment. */
async function waitUntilServed(api: Api, { metadata }: Manifest): Promise<void> {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`;
  for (let waitedMs = 0; waitedMs < ESTABLISHED_DEADLINE_MS; waitedMs += POLL_MS) {
    const { status, body } = await api.request(path);
    if (status === 200 && (await isServed(api, body as Definition))) return;
    await sleep(POLL_MS);
  }
  throw new ControlPlaneError('apply-failed', `CustomResourceDefinition ${metadata.name} was not established in time.`);
}

async function isServed(api: Api, { spec, status }: Definition): Promise<boolean> {
  if (!status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True')) return false;
  const served = spec.versions.filter((v) => v.served);
  const answers = await Promise.all(
    served.map((v) => api.request(`/apis/${spec.group}/${v.name}/${spec.names.plural}?limit=1`)),
  );
  return answers.every((answer) => answer.status === 200);
}

function refused(what: string, { status, body }: ApiAnswer): ControlPlaneError {
  const words = typeof body === 'object' && body !== null && 'message' in body ? body.message : body;
  return new ControlPlaneError('apply-failed', `${what}: the API server answered ${status}: ${String(words)}`);
}
