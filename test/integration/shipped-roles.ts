import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, parseManifests } from '../../hack/control-plane/apply.ts';
import { pkiDirectory, type Connection } from '../../hack/control-plane/connection.ts';
import { issueClient, pkiFiles, readCredential } from '../../hack/control-plane/pki.ts';
import type { Endpoint } from '../../pkg/kube/endpoint.ts';
import { fixedEndpoint } from '../../pkg/kube/endpoint.ts';

/** The user and the namespace that the shipped roles speak of. */
const MACHINIST = 'machinist';
const FOLDER = join(import.meta.dirname, '../../deploy/rbac');

/** A file of deploy/rbac. */
export type RoleFile =
  | 'control'
  | 'control-identity'
  | 'control-manager'
  | 'control-machine-controller'
  | 'target'
  | 'target-manager'
  | 'sim-driver';

/** Applies shipped roles; those for namespace `machinist` to `namespace` instead. */
export async function grant(api: Api, file: RoleFile, namespace: string): Promise<void> {
  const manifests = parseManifests(readFileSync(join(FOLDER, `${file}.yaml`), 'utf8'));
  const moved = manifests.map(({ metadata, ...rest }) => ({
    ...rest,
    metadata: metadata.namespace === MACHINIST ? { ...metadata, namespace } : metadata,
  }));
  await applyManifests(api, moved);
}

/** The API server as the user whom the shipped roles bind: it may do nothing else. */
export async function asMachinist({ directory, url, ca }: Connection): Promise<Endpoint> {
  const files = pkiFiles(pkiDirectory(directory));
  const { certificate, key } = await issueClient(readCredential(files.ca, files.caKey), { user: MACHINIST });
  return fixedEndpoint(url, { tls: { ca, cert: certificate, key } });
}
