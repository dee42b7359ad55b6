import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { EnvHttpProxyAgent, fetch, type Response } from 'undici';

import type { Checksum } from './checksum.ts';
import { errnoOf, messageOf } from './errno.ts';
import { ControlPlaneError } from './error.ts';

/** A server that is silent for so long has gone. */
const SILENT_MS = 30_000;
const TICK_MS = 10_000;
const MEGABYTE = 1e6;

export interface DownloadOptions {
  /** Told every 10 s how far it is. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** A URL without its query, which may be a key. */
export function shownURL(url: URL | string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

/** The text at a URL; undefined when the server has no such file. Throws ControlPlaneError, or the signal's reason. */
export async function downloadText(url: string, options: DownloadOptions): Promise<string | undefined> {
  return await request(url, options, async (response) =>
    response.status === 404 ? undefined : await okay(response, url).text(),
  );
}

/**
 * Writes the file at a URL to `target`, and rejects unless it has the checksum. What is there then is to be removed by the caller, also after
 * an error. Throws ControlPlaneError (`download-failed`, `checksum-mismatch`), or the signal's reason.
 */
export async function downloadFile(
  url: string,
  target: string,
  { algorithm, hex }: Checksum,
  options: DownloadOptions,
): Promise<void> {
  await request(url, options, async (response) => {
    const { body, headers } = okay(response, url);
    if (body === null) throw new Error('the response has no body');
    const size = Number(headers.get('content-length') ?? 0);
    const hash = createHash(algorithm);
    let bytes = 0;
    const count = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        bytes += chunk.length;
        done(undefined, chunk);
      },
    });
    const startedMs = performance.now();
    const ticker = setInterval(() => {
      const of = size === 0 ? '' : ` of ${megabytes(size)}`;
      options.log(
        `downloading ${shownURL(url)}… ${megabytes(bytes)}${of} MB, ${Math.round((performance.now() - startedMs) / 1000)} s`,
      );
    }, TICK_MS);
    try {
      await pipeline(Readable.fromWeb(body), count, createWriteStream(target));
    } finally {
      clearInterval(ticker);
    }
    const actual = hash.digest('hex');
    if (actual !== hex) {
      throw new ControlPlaneError(
        'checksum-mismatch',
        `${shownURL(url)} has the ${algorithm} ${actual}, and ${hex} is expected: it was not kept. Check the URL and the checksum.`,
      );
    }
  });
}

function megabytes(bytes: number): string {
  return (bytes / MEGABYTE).toFixed(0);
}

function okay(response: Response, url: string): Response {
  if (response.ok) return response;
  throw new ControlPlaneError(
    'download-failed',
    `${shownURL(url)} could not be downloaded: the server answers ${response.status} ${response.statusText}. Check the URL.`.replace(
      ' .',
      '.',
    ),
  );
}

/** One request through the proxy that the environment names. */
async function request<T>(
  url: string,
  { signal }: DownloadOptions,
  use: (response: Response) => Promise<T>,
): Promise<T> {
  const dispatcher = new EnvHttpProxyAgent({ headersTimeout: SILENT_MS, bodyTimeout: SILENT_MS });
  try {
    return await use(await fetch(url, { dispatcher, ...(signal === undefined ? {} : { signal }) }));
  } catch (err) {
    signal?.throwIfAborted();
    if (err instanceof ControlPlaneError || isOfDisk(err)) throw err;
    const why = err instanceof Error && err.cause !== undefined ? messageOf(err.cause) : messageOf(err);
    throw new ControlPlaneError(
      'download-failed',
      `${shownURL(url)} could not be downloaded (${why}): check the network and the proxy settings (HTTPS_PROXY), then try again.`,
      { cause: err },
    );
  } finally {
    await dispatcher.destroy();
  }
}

function isOfDisk(err: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EACCES', 'EROFS', 'EPERM'].includes(errnoOf(err) ?? '');
}
