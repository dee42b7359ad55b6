import { writeFileSync } from 'node:fs';

import type { Credential } from './pki.ts';

/** How a client proves who it is: a client certificate (PEM) or a bearer token. */
export type Identity = Credential | { readonly token: string };

/** What goes into a kubeconfig. */
export interface KubeconfigContent {
  readonly url: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  readonly identity: Identity;
  readonly namespace?: string;
}

/** A kubeconfig with one cluster, one user and one context, everything inline. */
export function kubeconfig({ url, ca, identity, namespace }: KubeconfigContent): string {
  return `apiVersion: v1
kind: Config
clusters:
  - name: machinist
    cluster:
      server: ${JSON.stringify(url)}
      certificate-authority-data: ${base64(ca)}
users:
  - name: machinist
    user:
${userLines(identity)}
contexts:
  - name: machinist
    context:
      cluster: machinist
      user: machinist
      namespace: ${JSON.stringify(namespace ?? 'default')}
current-context: machinist
`;
}

/** Writes a kubeconfig that only the owner can read. */
export function writeKubeconfig(path: string, content: KubeconfigContent): void {
  writeFileSync(path, kubeconfig(content), { mode: 0o600 });
}

function userLines(identity: Identity): string {
  if ('token' in identity) return `      token: ${JSON.stringify(identity.token)}`;
  return [
    `      client-certificate-data: ${base64(identity.certificate)}`,
    `      client-key-data: ${base64(identity.key)}`,
  ].join('\n');
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
