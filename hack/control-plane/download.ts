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
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const MOST_REDIRECTS = 5;

export interface DownloadOptions {
  /** Told every 10 s how far it is. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Throws where a server may not lead. */
  readonly onRedirect: (to: URL) => void;
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

/** One request through the proxy that the environment names, and those to which it is redirected. */
async function request<T>(
  url: string,
  { signal, onRedirect }: DownloadOptions,
  use: (response: Response) => Promise<T>,
): Promise<T> {
  const dispatcher = new EnvHttpProxyAgent({ headersTimeout: SILENT_MS, bodyTimeout: SILENT_MS });
  try {
    let at = new URL(url);
    for (let redirects = 0; ; redirects++) {
      const response = await fetch(at, {
        dispatcher,
        redirect: 'manual',
        ...(signal === undefined ? {} : { signal }),
      });
      const to = redirectOf(response, at);
      if (to === undefined) return await use(response);
      await response.body?.cancel();
      if (redirects === MOST_REDIRECTS) throw new Error(`more than ${MOST_REDIRECTS} redirects`);
      onRedirect(to);
      at = to;
    }
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

/** Where a response leads; undefined when it is one. */
function redirectOf({ status, headers }: Response, from: URL): URL | undefined {
  const location = headers.get('location');
  if (!REDIRECTS.has(status) || location === null) return undefined;
  const to = URL.parse(location, from.href);
  const isUsable = to !== null && ['http:', 'https:'].includes(to.protocol) && to.username + to.password === '';
  if (isUsable) return to;
  throw new Error('the server redirects to something that is no plain http or https URL');
}

function isOfDisk(err: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EACCES', 'EROFS', 'EPERM'].includes(errnoOf(err) ?? '');
}
