// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 wants its side effect, and before itself
import 'reflect-metadata';
import { generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import * as x509 from '@peculiar/x509';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const HOUR_MS = 3_600_000;
const LIFETIME_MS = 365 * 24 * HOUR_MS;

/** A certificate and its private key, both PEM. */
export interface Credential {
  readonly certificate: string;
  readonly key: string;
}

/** Who a client certificate speaks for: Kubernetes takes the user from CN and the groups from O. */
export interface Subject {
  readonly user: string;
  readonly groups?: readonly string[];
  /** How long the certificate is good for; a year by default. */
  readonly lifetimeMs?: number;
}

/** Files of a control plane's certificates and keys; all are PEM, keys are readable by the owner only. */
export interface PkiFiles {
  readonly ca: string;
  readonly caKey: string;
  readonly server: string;
  readonly serverKey: string;
  /** The API server's own client certificate at kubelets. */
  readonly kubeletClient: string;
  readonly kubeletClientKey: string;
  readonly serviceAccountPublicKey: string;
  readonly serviceAccountKey: string;
  /** Bearer tokens that the API server takes: of those who ask it most. */
  readonly tokens: string;
}

/** Paths only; the files are there after createPki. */
export function pkiFiles(directory: string): PkiFiles {
  const file = (name: string): string => join(directory, name);
  return {
    ca: file('ca.crt'),
    caKey: file('ca.key'),
    server: file('server.crt'),
    serverKey: file('server.key'),
    kubeletClient: file('kubelet-client.crt'),
    kubeletClientKey: file('kubelet-client.key'),
    serviceAccountPublicKey: file('service-account.pub'),
    serviceAccountKey: file('service-account.key'),
    tokens: file('tokens.csv'),
  };
}

/** Who may do everything. */
export const ADMIN = { user: 'admin', groups: ['system:masters'] } as const satisfies Subject;

/** Who has a bearer token: the admin, and the users that deploy/rbac binds. A certificate is verified anew with each request. */
const TOKEN_HOLDERS: readonly Subject[] = [
  ADMIN,
  ...[
    'machinist',
    'machinist-sim-driver',
    'machinist-kwok-driver',
    'machinist-cluster-api-driver',
    'machinist-kwok',
  ].map((user) => ({ user })),
];

/** Makes a certificate authority of its own, a server certificate for these hosts, the service account key pair and the tokens. */
export async function createPki(directory: string, hosts: readonly string[]): Promise<PkiFiles> {
  const files = pkiFiles(directory);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeCredential(files.ca, files.caKey, await createCa());
  const [server, kubeletClient] = await Promise.all([
    issueServer(readCredential(files.ca, files.caKey), hosts),
    issueClient(readCredential(files.ca, files.caKey), {
      user: 'kube-apiserver-kubelet-client',
      groups: ['system:masters'],
    }),
  ]);
  writeCredential(files.server, files.serverKey, server);
  writeCredential(files.kubeletClient, files.kubeletClientKey, kubeletClient);

  const serviceAccount = generateKeyPairSync('ec', { namedCurve: KEY_ALGORITHM.namedCurve });
  writeFileSync(files.serviceAccountPublicKey, serviceAccount.publicKey.export({ type: 'spki', format: 'pem' }));
  const privateKey = serviceAccount.privateKey.export({ type: 'pkcs8', format: 'pem' });
  writeFileSync(files.serviceAccountKey, privateKey, { mode: 0o600 });
  const tokens = TOKEN_HOLDERS.map((holder) => `${randomBytes(16).toString('hex')},${rightsOf(holder)}\n`);
  writeFileSync(files.tokens, tokens.join(''), { mode: 0o600 });
  return files;
}

/** The token of this user in these groups, as createPki made it; undefined for those who have none. */
export function readToken({ tokens }: PkiFiles, subject: Subject): string | undefined {
  const rows = readFileSync(tokens, 'utf8').split('\n');
  const row = rows.find((one) => one.endsWith(`,${rightsOf(subject)}`));
  return row?.slice(0, row.indexOf(','));
}

/** What follows the token in the server's file: name, UID and groups. */
function rightsOf({ user, groups = [] }: Subject): string {
  return `${user},${user},"${groups.join()}"`;
}

/** A client certificate that the API server takes for this user in these groups. */
export function issueClient(ca: Credential, subject: Subject): Promise<Credential> {
  const name = [{ CN: [subject.user] }, ...(subject.groups ?? []).map((group) => ({ O: [group] }))];
  const usage = new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]);
  return issue(ca, name, [usage], subject.lifetimeMs);
}

/** Reads a pair of PEM files. */
export function readCredential(certificate: string, key: string): Credential {
  return { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') };
}

function issueServer(ca: Credential, hosts: readonly string[]): Promise<Credential> {
  const names = hosts.map((value) => ({ type: isIp(value) ? ('ip' as const) : ('dns' as const), value }));
  return issue(
    ca,
    [{ CN: ['kube-apiserver'] }],
    [
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names),
    ],
  );
}

async function createCa(): Promise<Credential> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity(),
    name: [{ CN: ['machinist-control-plane'] }],
    keys,
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: await toPem(keys.privateKey) };
}

async function issue(
  ca: Credential,
  subject: x509.JsonName,
  extensions: x509.Extension[],
  lifetimeMs?: number,
): Promise<Credential> {
  const issuer = new x509.X509Certificate(ca.certificate);
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    ...validity(lifetimeMs),
    subject,
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey: await fromPem(ca.key),
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...extensions,
    ],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: await toPem(keys.privateKey) };
}

/** Begins an hour ago, for clocks that are set back while a control plane runs. */
function validity(lifetimeMs = LIFETIME_MS): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - HOUR_MS), notAfter: new Date(now + lifetimeMs) };
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
}

async function toPem(key: webcrypto.CryptoKey): Promise<string> {
  return `${x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;
}

function fromPem(pem: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(pem), KEY_ALGORITHM, false, ['sign']);
}

function writeCredential(certificate: string, key: string, credential: Credential): void {
  writeFileSync(certificate, credential.certificate);
  writeFileSync(key, credential.key, { mode: 0o600 });
}

function isIp(host: string): boolean {
  return /^[\d.]+$/.test(host) || host.includes(':');
}
