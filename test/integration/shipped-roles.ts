import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, type Manifest, parseManifests } from '../../hack/control-plane/apply.ts';
import { pkiDirectory, type Connection } from '../../hack/control-plane/connection.ts';
import { issueClient, pkiFiles, readCredential } from '../../hack/control-plane/pki.ts';
import type { Endpoint } from '../../pkg/kube/client/endpoint.ts';
import { fixedEndpoint } from '../../hack/control-plane/fixed-endpoint.ts';
import { eventually } from '../expect/eventually.ts';

/** The user and the namespace that the shipped roles speak of. */
const MACHINIST = 'machinist';
const FOLDER = join(import.meta.dirname, '../../deploy/rbac');

/** A file of deploy/rbac. */
export type RoleFile =
  | 'cell'
  | 'cells'
  | 'named-cells'
  | 'cells-target'
  | 'control'
  | 'control-identity'
  | 'control-manager'
  | 'control-machine-controller'
  | 'cluster-api'
  | 'cluster-api-all-namespaces'
  | 'ironcore-lifecycle'
  | 'ironcore-machines'
  | 'ironcore-pools'
  | 'ironcore-scheduler'
  | 'mirantis'
  | 'mirantis-all-namespaces'
  | 'target'
  | 'target-manager'
  | 'sim-driver'
  | 'kwok-driver'
  | 'cluster-api-driver'
  | 'ironcore-driver'
  | 'kwok';

/**
 * Applies shipped roles; those for namespace `machinist` to `namespace` instead, and bound to `user` by bindings of its own
 * instead of user `machinist`. Resolves when the API server obeys them: its authorizer learns of roles by watches, a moment after
 * they were stored.
 */
export async function grant(api: Api, file: RoleFile, namespace: string, user = MACHINIST): Promise<void> {
  const manifests = [
    ...parseManifests(readFileSync(join(FOLDER, `${file}.yaml`), 'utf8')),
    ...bindingOf(file, namespace),
  ];
  const moved = manifests.map((manifest) => boundTo(user, moveTo(namespace, manifest)));
  await applyManifests(api, moved);
  const reviews = moved.flatMap((manifest) => reviewsOf(manifest as Manifest & Partial<Binding>, moved));
  await eventually(async () => (await Promise.all(reviews.map((review) => allows(api, review)))).every(Boolean), {
    describe: `the API server to obey ${file}.yaml in ${namespace}`,
  });
}

/** Where it is in a file of its own: in the namespace of the cell, for the manager in any. */
function bindingOf(file: RoleFile, namespace: string): readonly Manifest[] {
  if (file !== 'cell') return [];
  const shipped = parseManifests(readFileSync(join(FOLDER, '../cell-namespace.yaml'), 'utf8'));
  return shipped
    .filter(({ kind }) => kind === 'RoleBinding')
    .map((manifest) => ({ ...manifest, metadata: { ...manifest.metadata, namespace } }));
}

/** For `namespace` what is for namespace `machinist`, also where it is a subject that lives there. */
export function moveTo(namespace: string, manifest: Manifest & Partial<Binding>): Manifest {
  const moved = <T extends { readonly namespace?: string }>(place: T): T =>
    place.namespace === MACHINIST ? { ...place, namespace } : place;
  const { metadata, subjects } = manifest;
  return { ...manifest, metadata: moved(metadata), ...(subjects && { subjects: subjects.map(moved) }) };
}

function boundTo(user: string, manifest: Manifest & Partial<Binding>): Manifest {
  const { metadata, subjects } = manifest;
  if (user === MACHINIST || subjects?.some(({ name }) => name === MACHINIST) !== true) return manifest;
  const bound = subjects.filter(({ kind }) => kind === 'User').map((subject) => ({ ...subject, name: user }));
  return { ...manifest, metadata: { ...metadata, name: `${metadata.name}-${user}` }, subjects: bound };
}

interface Binding {
  readonly roleRef: { readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

interface Rule {
  readonly apiGroups: readonly [string];
  readonly resources: readonly [string];
  readonly resourceNames?: readonly [string];
  readonly verbs: readonly [string];
}

/** One question for each rule that a binding gives to a user. */
function reviewsOf({ metadata, roleRef, subjects }: Manifest & Partial<Binding>, all: readonly Manifest[]): unknown[] {
  const user = subjects?.find(({ kind }) => kind === 'User')?.name;
  if (roleRef === undefined || user === undefined) return [];
  const role = all.find(
    (manifest) => manifest.kind.endsWith('Role') && manifest.metadata.name === roleRef.name,
  ) as Manifest & { readonly rules: readonly Rule[] };
  return role.rules.map(({ apiGroups: [group], resources: [path], resourceNames, verbs: [verb] }) => {
    const [resource, subresource] = path.split('/');
    const { namespace } = metadata;
    return { user, resourceAttributes: { group, resource, subresource, name: resourceNames?.[0], verb, namespace } };
  });
}

/** What the API server answers to a SubjectAccessReview. */
export async function allows(api: Api, spec: unknown): Promise<boolean> {
  const answer = await api.request('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    method: 'POST',
    body: { spec },
  });
  return (answer.body as { status: { allowed: boolean } }).status.allowed;
}

/** The API server as the user whom the shipped roles bind: it may do nothing else. */
export async function asMachinist({
  directory,
  url,
  ca,
}: Pick<Connection, 'directory' | 'url' | 'ca'>): Promise<Endpoint> {
  const files = pkiFiles(pkiDirectory(directory));
  const { certificate, key } = await issueClient(readCredential(files.ca, files.caKey), { user: MACHINIST });
  return fixedEndpoint(url, { tls: { ca, cert: certificate, key } });
}
