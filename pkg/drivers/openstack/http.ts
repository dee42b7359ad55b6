import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

import { Agent, EnvHttpProxyAgent, request, type Dispatcher } from 'undici';

import { messageOf } from '../../driver/errno.ts';
import { DriverError } from '../../driver/error.ts';
import { type Answer, NoAnswerError } from './answer.ts';
import type { OpenStackCredentials } from './credentials.ts';
import type { Proxies } from './settings.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/** So many requests to one service are under way at once; others wait for their turn. */
const CONNECTIONS = 16;
const CONNECT_TIMEOUT_MS = 10_000;
const READ_TIMEOUT_MS = 30_000;
/** Nova has been seen to take 21 s for a creation. */
const WRITE_TIMEOUT_MS = 90_000;
const IDLE_MS = 20_000;
/** After these nothing was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** What undici says when a proxy does not connect to where it is asked to: nothing was sent there. */
const OF_PROXY = /^Proxy response/;
/** The other side's certificate is not to be trusted, as Node's TLS calls it. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|CERT_/;

export class HttpClient {
  readonly #dispatcher: Dispatcher;

  /** Throws InvalidArgument that names the key of the Secret that holds no PEM. */
  constructor(tls: OpenStackCredentials['tls'], proxies: Proxies) {
    const options = {
      connections: CONNECTIONS,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
    };
    const connect = { ...connectOptions(tls), timeout: CONNECT_TIMEOUT_MS };
    const { http, https, not } = proxies;
    this.#dispatcher =
      http === '' && https === ''
        ? new Agent({ ...options, connect })
        : new EnvHttpProxyAgent({
            ...options,
            connect,
            requestTls: connect,
            httpProxy: http,
            httpsProxy: https,
            noProxy: not,
          });
  }

  /** Throws NoAnswerError, InvalidArgument for a certificate that is not trusted, or the signal's reason. */
  async send({ method, url, headers = {}, body, signal }: HttpRequest): Promise<Answer> {
    signal.throwIfAborted();
    const timeoutMs = method === 'GET' ? READ_TIMEOUT_MS : WRITE_TIMEOUT_MS;
    try {
      const response = await request(url, {
        method,
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body === undefined ? null : JSON.stringify(body),
        dispatcher: this.#dispatcher,
        signal,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      const text = await response.body.text();
      return { status: response.statusCode, headers: flat(response.headers), body: parsed(text) };
    } catch (err) {
      signal.throwIfAborted();
      throw failureOf(err, url);
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }
}

function connectOptions({ ca, cert, key, isInsecure }: OpenStackCredentials['tls']): object {
  const material = { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert, key }) };
  try {
    if (ca !== undefined) void new X509Certificate(ca); // TLS takes no notice of what is none
    const isPlain = Object.keys(material).length === 0;
    return {
      ...(isPlain ? {} : { secureContext: createSecureContext(material) }),
      ...(isInsecure ? { rejectUnauthorized: false } : {}),
    };
  } catch (err) {
    const names = cert === undefined ? 'caCert' : 'caCert, clientCert or clientKey';
    throw new DriverError('InvalidArgument', `secret: ${names} cannot be read as PEM: ${messageOf(err)}`, {
      terminal: true,
    });
  }
}

function failureOf(err: unknown, url: string): Error {
  const { host } = new URL(url);
  const code = codeOf(err);
  const distrust = distrustOf(code, host);
  if (distrust !== undefined) return new DriverError('InvalidArgument', `secret: ${distrust} (${code})`);
  const isOfProxy = err instanceof Error && OF_PROXY.test(err.message);
  const why = code === '' || isOfProxy ? messageOf(err) : code;
  return new NoAnswerError(`${host} did not answer: ${why}`, !NEVER_SENT.has(code) && !isOfProxy, err);
}

/** What is wrong with the certificate of the other side, by Node's code for it, and what helps; undefined: nothing. */
export function distrustOf(code: string, host: string): string | undefined {
  const of = `the certificate of ${host}`;
  if (/ALTNAME/.test(code)) return `authURL: ${of} is for other names; use one of them, here and in the catalog`;
  if (/EXPIRED|NOT_YET_VALID/.test(code)) return `authURL: ${of} is not valid at this time; the cloud needs a new one`;
  if (!UNTRUSTED.test(code)) return undefined;
  return `caCert: ${of} is not trusted; put the certificate of its authority into key caCert of the Secret`;
}

/** Of several attempts (IPv4, IPv6) the first one's. */
function codeOf(err: unknown): string {
  if (typeof err !== 'object' || err === null) return '';
  const { code, errors } = err as { code?: unknown; errors?: unknown };
  if (typeof code === 'string') return code;
  return Array.isArray(errors) ? codeOf(errors[0]) : '';
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Answer['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
