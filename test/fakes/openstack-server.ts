import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

import type { Answer } from '../../pkg/drivers/openstack/answer.ts';
import type { ServiceType } from '../../pkg/drivers/openstack/catalog.ts';
import type { ServiceRequest } from '../../pkg/drivers/openstack/session.ts';
import type { SecretTexts } from '../drivers/requests.ts';
import type { FakeOpenStack } from './fake-openstack.ts';

const TOKEN = 'token';
const PASSWORD = 'password';
/** Below the address of the server, as a catalog names services, and where the driver then asks. */
const ENDPOINTS: readonly { readonly type: ServiceType; readonly path: string; readonly below: string }[] = [
  { type: 'compute', path: '/compute/v2.1', below: '' },
  { type: 'network', path: '/network', below: '/v2.0' },
  { type: 'image', path: '/image', below: '/v2' },
  { type: 'volumev3', path: '/volume/v3', below: '' },
];

/** A cloud without services that is reached by HTTP, with a Keystone that knows one password: for a driver that is a process of its own. */
export class OpenStackServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #cloud: FakeOpenStack;

  private constructor(cloud: FakeOpenStack) {
    this.#cloud = cloud;
    this.#server = createServer((req, res) => void this.#answer(req, res));
  }

  static async start(cloud: FakeOpenStack): Promise<OpenStackServer> {
    const server = new OpenStackServer(cloud);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** What a Secret holds that opens it. */
  get secret(): SecretTexts {
    const user = { domainName: 'Default', tenantName: 'project', username: 'user', password: PASSWORD };
    return { authURL: `${this.#url}/identity/v3`, ...user };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get #url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = Number(req.headers['content-length'] ?? '0') > 0 ? await json(req) : undefined;
    const { status, headers, body: answer } = this.#answerTo(req, body);
    res.writeHead(status, { ...headers, 'content-type': 'application/json' });
    res.end(answer === '' ? '' : JSON.stringify(answer));
  }

  #answerTo({ method = 'GET', url = '/', headers }: IncomingMessage, body: unknown): Answer {
    if (url === '/identity/v3/auth/tokens') return this.#login(body);
    if (headers['x-auth-token'] !== TOKEN) return unauthenticated();
    const found = ENDPOINTS.find(({ path, below }) => url.startsWith(`${path}${below}/`));
    if (found === undefined) return { status: 404, headers: {}, body: { itemNotFound: { message: url } } };
    const path = url.slice(found.path.length + found.below.length);
    return this.#cloud.serve({ service: found.type, method: method as ServiceRequest['method'], path, body });
  }

  #login(body: unknown): Answer {
    if (!JSON.stringify(body).includes(`"password":"${PASSWORD}"`)) return unauthenticated();
    const catalog = ENDPOINTS.map(({ type, path }) => ({
      type,
      endpoints: [{ interface: 'public', region: 'region', url: `${this.#url}${path}` }],
    }));
    const times = { issued_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-02T00:00:00Z' };
    const token = { ...times, project: { id: 'project' }, catalog };
    return { status: 201, headers: { 'x-subject-token': TOKEN }, body: { token } };
  }
}

function unauthenticated(): Answer {
  const message = 'The request you have made requires authentication.';
  return { status: 401, headers: {}, body: { error: { message, code: 401 } } };
}
