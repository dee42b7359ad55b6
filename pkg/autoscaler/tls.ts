import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { PeerCertificate, SecureContextOptions } from 'node:tls';

import { ServerCredentials } from '@grpc/grpc-js';

import type { Clock } from '../clock/clock.ts';
import type { ServerTlsFiles } from '../config/autoscaler.ts';
import type { Logger } from '../log/logger.ts';

/** How often the files are read. Secrets that are mounted reach the pod after about a minute anyway. */
const RELOAD_MS = 10_000;

/** What a certificate is reloaded with. */
export interface TlsOptions {
  readonly files: ServerTlsFiles;
  readonly clock: Clock;
  readonly log: Logger;
  /** Another authority counts: whoever is connected by the word of the former one has to connect anew. */
  readonly onAuthority: () => void;
}

/** A certificate, key or authority that nobody can use; the message names the file. */
export class TlsFileError extends Error {
  override readonly name = 'TlsFileError';
}

/**
 * A server's certificate and the authority of its clients, from files that may be replaced at any time: new connections use what is there, and what is
 * broken is told and not used. Clients without a certificate are let in, so that their calls can be told what is missing;
 * anyone who answers calls must ask for one.
 */
export class ReloadedCredentials extends ServerCredentials {
  readonly #options: TlsOptions;
  /** By whose word connections are there. */
  #authority: string;
  /** What was read last, whether it could be used or not. */
  #texts: readonly string[];
  #cancel: () => void = () => undefined;

  private constructor(options: TlsOptions, texts: readonly string[]) {
    super({ requestCert: true, rejectUnauthorized: false }, contextOf(texts, options.files));
    this.#options = options;
    this.#texts = texts;
    this.#authority = authorityIn(texts);
  }

  /** Rejects with TlsFileError when the files cannot be used. */
  static async load(options: TlsOptions): Promise<ReloadedCredentials> {
    const credentials = new ReloadedCredentials(options, await readAll(options.files));
    credentials.#watch();
    return credentials;
  }

  /** Looks for new contents now. Never rejects. */
  async reload(): Promise<void> {
    const { files, log } = this.#options;
    try {
      const texts = await readAll(files);
      if (texts.every((text, i) => text === this.#texts[i])) return;
      this.#texts = texts;
      this.updateSecureContextOptions(contextOf(texts, files));
      if (authorityIn(texts) !== this.#authority) this.#options.onAuthority();
      this.#authority = authorityIn(texts);
      log.info({ file: files.cert }, "took a new certificate for the autoscaler's port");
    } catch (err) {
      log.error(
        { err: (err as Error).message },
        "could not take a new certificate for the autoscaler's port; kept the old one",
      );
    }
  }

  /** Reads no more. */
  stop(): void {
    this.#cancel();
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }

  #watch(): void {
    this.#cancel = this.#options.clock.schedule(RELOAD_MS, () => {
      void this.reload().then(() => this.#watch());
    });
  }
}

/** One alternative name as Node writes it: what could be taken for another one is quoted as in JSON. */
const ALTERNATIVE = /([A-Za-z ]+):("(?:\\.|[^"\\])*"|[^,"]*)(?:, |$)/gy;

/** The names that a client's certificate shows: its common name, and its alternative names. */
export function namesOf({
  subject,
  subjectaltname = '',
}: Pick<PeerCertificate, 'subject' | 'subjectaltname'>): readonly string[] {
  const common: unknown = subject?.CN;
  const alternatives = [...subjectaltname.matchAll(ALTERNATIVE)]
    .filter(([, kind]) => kind === 'DNS' || kind === 'URI')
    .map(([, , text = '']) => (text.startsWith('"') ? String(JSON.parse(text)) : text));
  return [...(typeof common === 'string' ? [common] : []), ...alternatives];
}

function readAll(files: ServerTlsFiles): Promise<string[]> {
  return Promise.all(
    [files.cert, files.key, files.clientCA].map(async (file) => {
      try {
        return await readFile(file, 'utf8');
      } catch (err) {
        throw new TlsFileError(`${file} cannot be read: ${(err as Error).message}`);
      }
    }),
  );
}

function authorityIn([, , ca = '']: readonly string[]): string {
  return ca;
}

/** Throws TlsFileError unless all three can be used, and certificate and key belong together. */
function contextOf([cert = '', key = '', ca = '']: readonly string[], files: ServerTlsFiles): SecureContextOptions {
  const parsed = read(files.cert, 'certificate', () => new X509Certificate(cert));
  const own = read(files.key, 'private key', () => createPrivateKey(key));
  read(files.clientCA, 'certificate', () => new X509Certificate(ca));
  if (!parsed.checkPrivateKey(own)) throw new TlsFileError(`${files.key} is not the key of ${files.cert}`);
  const context = { cert, key, ca };
  read(files.cert, 'certificate', () => createSecureContext(context));
  return context;
}

function read<T>(file: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (err) {
    throw new TlsFileError(`${file} holds no ${what} in PEM: ${(err as Error).message}`);
  }
}
