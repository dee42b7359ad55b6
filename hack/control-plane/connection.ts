import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Api } from './api.ts';
import type { Program } from './binaries.ts';
import { writeKubeconfig, type Identity } from './kubeconfig.ts';
import { ADMIN, issueClient, pkiFiles, readCredential, readToken, type Credential, type Subject } from './pki.ts';
import type { ProgramName } from './programs.ts';

const CONNECTION_FILE = 'connection.json';

/** What is written down about a running control plane, so that another process of this user can use it. */
interface ConnectionRecord {
  readonly url: string;
  readonly programs: Partial<Record<ProgramName, Program>>;
}

/** How to reach a running control plane. Holds no connection open. */
export class Connection {
  readonly directory: string;
  readonly url: string;
  /** PEM of the certificate authority. */
  readonly ca: string;
  /** A client certificate of group system:masters. */
  readonly admin: Credential;
  /** A token of the same. */
  readonly adminToken: string;
  /** Path of the kubeconfig with the admin's token. */
  readonly kubeconfig: string;
  /** The programs that are there besides those that run (kubectl, kubemark), with their paths. */
  readonly programs: Partial<Record<ProgramName, Program>>;

  private constructor(directory: string, admin: Credential, { url, programs }: ConnectionRecord) {
    this.directory = directory;
    this.url = url;
    this.programs = programs;
    const files = pkiFiles(pkiDirectory(directory));
    this.ca = readFileSync(files.ca, 'utf8');
    this.admin = admin;
    this.adminToken = readToken(files, ADMIN) ?? '';
    this.kubeconfig = kubeconfigPath(directory, 'admin');
  }

  /** Writes down a new control plane: its address, and the admin's certificate, a new one unless it has one, and kubeconfig. */
  static async create(directory: string, record: ConnectionRecord, known?: Credential): Promise<Connection> {
    const files = pkiFiles(pkiDirectory(directory));
    const admin = known ?? (await issueClient(readCredential(files.ca, files.caKey), ADMIN));
    writeFileSync(adminFile(directory, 'crt'), admin.certificate);
    writeFileSync(adminFile(directory, 'key'), admin.key, { mode: 0o600 });
    writeFileSync(join(directory, CONNECTION_FILE), JSON.stringify(record), { mode: 0o600 });
    const connection = new Connection(directory, admin, record);
    connection.#write('admin', { token: connection.adminToken });
    return connection;
  }

  /** Reads what `create` wrote in this directory. */
  static open(directory: string): Connection {
    const record = JSON.parse(readFileSync(join(directory, CONNECTION_FILE), 'utf8')) as ConnectionRecord; // by create
    return new Connection(directory, readCredential(adminFile(directory, 'crt'), adminFile(directory, 'key')), record);
  }

  /** A new client certificate that this control plane takes for this user. */
  credentialFor(subject: Subject): Promise<Credential> {
    const files = pkiFiles(pkiDirectory(this.directory));
    return issueClient(readCredential(files.ca, files.caKey), subject);
  }

  /**
   * What this control plane takes for this user at the least cost: a token, or a new client certificate for those who have none. The server
   * verifies a certificate anew with each request, which costs it as much as a third of a GET.
   */
  async identityFor(subject: Subject): Promise<Identity> {
    const token = readToken(pkiFiles(pkiDirectory(this.directory)), subject);
    return token === undefined ? await this.credentialFor(subject) : { token };
  }

  /** Writes a kubeconfig for this user and returns its path. */
  async kubeconfigFor(subject: Subject): Promise<string> {
    return this.#write(subject.user, await this.identityFor(subject));
  }

  /** Writes a kubeconfig that carries a bearer token (a bootstrap token, a service account's) and returns its path. */
  kubeconfigWithToken(name: string, token: string): string {
    return this.#write(name, { token });
  }

  /** Requests as the admin, or as anyone who `identity` says; undefined is nobody. The caller closes it. */
  api(identity: Identity | 'anonymous' = { token: this.adminToken }): Api {
    return new Api({ url: this.url, ca: this.ca, ...(identity === 'anonymous' ? {} : { identity }) });
  }

  #write(name: string, identity: Identity): string {
    const path = kubeconfigPath(this.directory, name);
    writeKubeconfig(path, { url: this.url, ca: this.ca, identity });
    return path;
  }
}

/** Folder of the certificates and keys inside a control plane's directory. */
export function pkiDirectory(directory: string): string {
  return join(directory, 'pki');
}

function adminFile(directory: string, extension: 'crt' | 'key'): string {
  return join(pkiDirectory(directory), `admin.${extension}`);
}

function kubeconfigPath(directory: string, name: string): string {
  const folder = join(directory, 'kubeconfig');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return join(folder, `${name.replaceAll(/[^\w.-]+/g, '-')}.yaml`);
}
