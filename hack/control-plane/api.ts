import { createSecureContext } from 'node:tls';

import { Agent, request, type Dispatcher } from 'undici';

import type { Identity } from './kubeconfig.ts';

const TIMEOUT_MS = 30_000;

/** What a request may carry. */
export interface ApiRequest {
  readonly method?: Dispatcher.HttpMethod;
  /** Sent as JSON; bytes as they are. */
  readonly body?: unknown;
  readonly contentType?: string;
  readonly timeoutMs?: number;
}

/** The answer, whatever its status: `body` is parsed JSON, or the text when it is none. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Plain requests to one API server as one user, for setting up and for looking at it from tests. Has no retries and no cache
 * by intent: it shows what the server says.
 */
export class Api {
  readonly url: string;
  readonly #agent: Agent;
  readonly #headers: Record<string, string>;

  constructor({ url, ca, identity }: { url: string; ca: string; identity?: Identity }) {
    const isToken = identity !== undefined && 'token' in identity;
    const client = identity === undefined || isToken ? {} : { cert: identity.certificate, key: identity.key };
    this.url = url;
    // Made once: certificates and keys are else parsed for each connection.
    const secureContext = createSecureContext({ ca, ...client });
    this.#agent = new Agent({ connect: { secureContext }, connections: 8, allowH2: false });
    this.#headers = isToken ? { authorization: `Bearer ${identity.token}` } : {};
  }

  /** Rejects only when there is no answer in time. */
  async request(path: string, { method, body, contentType, timeoutMs }: ApiRequest = {}): Promise<ApiAnswer> {
    const type = body === undefined ? {} : { 'content-type': contentType ?? 'application/json' };
    const response = await request(new URL(path, this.url), {
      dispatcher: this.#agent,
      method: method ?? 'GET',
      headers: { ...this.#headers, ...type },
      body: body === undefined ? null : body instanceof Uint8Array ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs ?? TIMEOUT_MS),
    });
    const text = await response.body.text();
    return { status: response.statusCode, body: parse(text) };
  }

  /** The body of an answer that agrees; throws with what the server said otherwise. A PATCH is a merge patch. */
  async send<T = unknown>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const contentType = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
    const answer = await this.request(path, { method, ...contentType, ...(body === undefined ? {} : { body }) });
    if (answer.status < 300) return answer.body as T; // by the caller's word
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }

  /** The object at a path, or undefined where the server says that there is none; throws with any other answer. */
  async find<T>(path: string): Promise<T | undefined> {
    const { status, body } = await this.request(path);
    if (status === 200) return body as T; // by the caller's word
    if (status === 404) return undefined;
    throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // /readyz and the like answer in plain text
  }
}
