import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';

import { ServerCredentials } from '@grpc/grpc-js';

import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/logger.ts';

/** How often the files are read. Secrets that are mounted reach the pod after about a minute anyway. */
const RELOAD_MS = 10_000;

/** PEM files of a server: its certificate and key, and the authority of its clients. */
export interface ServerTlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly clientCA: string;
}

export interface TlsOptions {
  readonly files: ServerTlsFiles;
  /** Whose it is, for the log: `the autoscaler's port`. */
  readonly port: string;
  /** Turns away clients without a certificate of the authority; else they are let in, so that their calls can be told what is missing. */
  readonly rejectsStrangers: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Another authority counts: whoever is connected by the word of the former one has to connect anew. */
  readonly onAuthority?: () => void;
}

/** A certificate, key or authority that nobody can use; the message names the file. */
export class TlsFileError extends Error {
  override readonly name = 'TlsFileError';
}

/**
 * A server's certificate and the authority of its clients, from files that may be replaced at any time: new connections use what is
 * there, and what is broken is told and not used. Unless strangers are rejected, anyone who answers calls must ask for a certificate.
 */
export class ReloadedServerCredentials extends ServerCredentials {
  readonly #options: TlsOptions;
  /** By whose word connections are there. */
  #authority: string;
  /** What was read last, whether it could be used or not. */
  #texts: readonly string[];
  /** What can be used of that. */
  #used: readonly string[];
  /** Listeners of their own. */
  readonly #servers = new Set<Server>();
  #cancel: () => void = () => undefined;

  private constructor(options: TlsOptions, texts: readonly string[]) {
    super({ requestCert: true, rejectUnauthorized: options.rejectsStrangers }, contextOf(texts, options.files));
    this.#options = options;
    this.#texts = texts;
    this.#used = texts;
    this.#authority = authorityIn(texts);
  }

  /** Rejects with TlsFileError when the files cannot be used. */
  static async load(options: TlsOptions): Promise<ReloadedServerCredentials> {
    const credentials = new ReloadedServerCredentials(options, await readAll(options.files));
    credentials.#watch();
    return credentials;
  }

  /** A server of HTTP/2 with this certificate, for who decides about connections before anything is said on them. */
  server(connected: (socket: TLSSocket) => void): Server {
    const { files, rejectsStrangers: rejectUnauthorized } = this.#options;
    const how = { requestCert: true, rejectUnauthorized, ALPNProtocols: ['h2'] };
    const server = createServer({ ...contextOf(this.#used, files), ...how }, connected);
    this.#servers.add(server);
    server.on('close', () => this.#servers.delete(server));
    return server;
  }

  /** Looks for new contents now. Never rejects. */
  async reload(): Promise<void> {
    const { files, port, log } = this.#options;
    try {
      const texts = await readAll(files);
      if (texts.every((text, i) => text === this.#texts[i])) return;
      this.#texts = texts;
      const context = contextOf(texts, files);
      this.updateSecureContextOptions(context);
      for (const server of this.#servers) server.setSecureContext(context);
      this.#used = texts;
      if (authorityIn(texts) !== this.#authority) this.#options.onAuthority?.();
      this.#authority = authorityIn(texts);
      log.info({ file: files.cert }, `loaded a new certificate for ${port}`);
    } catch (err) {
      log.error({ err: (err as Error).message }, `could not load a new certificate for ${port}; keeping the old one`);
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
  if (!parsed.checkPrivateKey(own)) throw new TlsFileError(`${files.key} does not match ${files.cert}`);
  const context = { cert, key, ca };
  read(files.cert, 'certificate', () => createSecureContext(context));
  return context;
}

function read<T>(file: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (err) {
    throw new TlsFileError(`${file} contains no ${what} in PEM format: ${(err as Error).message}`);
  }
}
