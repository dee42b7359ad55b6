import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { pkiDirectory } from '../../hack/control-plane/connection.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import {
  type Credential,
  createPki,
  issueClient,
  type PkiFiles,
  pkiFiles,
  readCredential,
} from '../../hack/control-plane/pki.ts';

/** The name by which the API server shows the certificates made here; by its address it shows its own. */
const NAME = 'localhost';

/**
 * An authority for one client of an API server and for what the server shows this client, which can be replaced, while everybody
 * else goes on with the server's own.
 */
export class Authority implements Disposable {
  readonly #directory: string;
  #files: PkiFiles;
  #generation = 0;

  private constructor(directory: string, files: PkiFiles) {
    this.#directory = directory;
    this.#files = files;
  }

  static async create(): Promise<Authority> {
    const directory = mkdtempSync(join(tmpdir(), 'machinist-authority-'));
    const files = await createPki(join(directory, '0'), [NAME]);
    const authority = new Authority(directory, files);
    authority.#show();
    return authority;
  }

  /** For kube-apiserver. */
  get arguments(): readonly string[] {
    return [`--tls-sni-cert-key=${join(this.#directory, 'shown.crt')},${join(this.#directory, 'shown.key')}:${NAME}`];
  }

  /** PEM of what signs the certificate that the server shows. */
  get ca(): string {
    return readFileSync(this.#files.ca, 'utf8');
  }

  /** Address of the server for the client. */
  url(plane: ControlPlane): string {
    return `https://${NAME}:${new URL(plane.url).port}`;
  }

  /** A client certificate by the present authority, good for `lifetimeMs`. */
  async issue(user: string, lifetimeMs?: number): Promise<Credential> {
    const ca = readCredential(this.#files.ca, this.#files.caKey);
    return await issueClient(ca, { user, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) });
  }

  /** Lets the server believe client certificates of the present authority, and no longer those of earlier ones. It reads files now and then. */
  admitClients({ directory }: ControlPlane): void {
    const path = pkiFiles(pkiDirectory(directory)).ca;
    const END = '-----END CERTIFICATE-----\n';
    const text = readFileSync(path, 'utf8');
    const own = text.slice(0, text.indexOf(END) + END.length);
    writeFileSync(path, own + this.ca);
  }

  /** A new authority, and a new certificate for the server by it. */
  async replace(): Promise<void> {
    this.#generation += 1;
    this.#files = await createPki(join(this.#directory, String(this.#generation)), [NAME]);
    this.#show();
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #show(): void {
    copyFileSync(this.#files.server, join(this.#directory, 'shown.crt'));
    copyFileSync(this.#files.serverKey, join(this.#directory, 'shown.key'));
  }
}
