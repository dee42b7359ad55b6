import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Connection, pkiDirectory } from '../../../hack/control-plane/connection.ts';
import { pkiFiles, readCredential } from '../../../hack/control-plane/pki.ts';
import { type APIAnswer, type APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { builtIn, type Kind, kindsWith } from '../api-server/kinds.ts';
import { AGE, NAME } from '../api-server/table/column.ts';
import { collectGarbage } from '../world/garbage-collector.ts';
import { Authorizer, RBAC_KINDS } from './authorizer.ts';
import { appliesDefinition, DEFINITION_KIND, Definitions } from './definitions.ts';
import { HTTPSFront } from './https-front.ts';
import { authenticator, type User } from './users.ts';

const MORE: readonly Kind[] = [
  ...RBAC_KINDS,
  DEFINITION_KIND,
  builtIn('v1', 'serviceaccounts', 'ServiceAccount', { columns: [NAME, AGE] }),
];
const parsed = new Map<string, readonly Kind[]>();
const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/**
 * A simulated API server that is reached as a real one is, over HTTPS and with the certificates and tokens of one, and that obeys roles. Of
 * kube-controller-manager it has the garbage collector. Time is the host's.
 */
export class SimulatedControlPlane implements AsyncDisposable {
  readonly connection: Connection;
  readonly #front: HTTPSFront;
  readonly #timers: Set<NodeJS.Timeout>;

  private constructor(connection: Connection, front: HTTPSFront, timers: Set<NodeJS.Timeout>) {
    this.connection = connection;
    this.#front = front;
    this.#timers = timers;
  }

  /** Takes whoever `real` takes, and has the definitions of a folder. */
  static async start(real: Connection, folder: string): Promise<SimulatedControlPlane> {
    const directory = mkdtempSync(join(tmpdir(), 'simulated-control-plane-'));
    cpSync(pkiDirectory(real.directory), pkiDirectory(directory), { recursive: true });
    const files = pkiFiles(pkiDirectory(directory));
    const kinds = [...kindsOf(folder), ...MORE];
    const server = new SimulatedAPIServer({
      kinds,
      nowMs: () => Date.now(),
      uid: () => randomUUID(),
      suffix: () => randomBytes(3).toString('hex').slice(1),
    });
    const timers = new Set<NodeJS.Timeout>();
    collectGarbage(server, { schedule: (delayMs, run) => schedule(timers, delayMs, run) });
    provideAccounts(server);
    for (const name of NAMESPACES) server.handle(creation('/api/v1/namespaces', name));
    const definitions = new Definitions(server, kinds, (run) => void schedule(timers, 0, run));
    const authorizer = new Authorizer(server);
    const front = await HTTPSFront.open<User>({
      credential: readCredential(files.server, files.serverKey),
      clientCA: real.ca,
      authenticate: authenticator(files.tokens),
      handle: (request, user) => answer({ server, definitions, authorizer }, request, user),
      port: 0,
    });
    const connection = await Connection.create(directory, { url: front.url, programs: real.programs });
    return new SimulatedControlPlane(connection, front, timers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#front[Symbol.asyncDispose]();
    rmSync(this.connection.directory, { recursive: true });
  }
}

/** Parsed once a process. */
function kindsOf(folder: string): readonly Kind[] {
  const known = parsed.get(folder) ?? kindsWith(folder);
  parsed.set(folder, known);
  return known;
}

interface Parts {
  readonly server: SimulatedAPIServer;
  readonly definitions: Definitions;
  readonly authorizer: Authorizer;
}

function answer({ server, definitions, authorizer }: Parts, request: APIRequest, user: User): APIAnswer {
  const review = authorizer.review(request, user);
  if (review !== undefined) return { code: 201, body: review };
  authorizer.require(request, user);
  const { method, path } = request;
  if (appliesDefinition(request)) return definitions.apply(request);
  const [, namespace] = method === 'DELETE' ? (/^\/api\/v1\/namespaces\/([^/?]+)$/.exec(path) ?? []) : [];
  return namespace === undefined ? server.handle(request) : erased(server, namespace);
}

/** A namespace goes with all that is in it, whatever finalizers hold that, as the test environment has it with a real server. */
function erased(server: SimulatedAPIServer, namespace: string): APIAnswer {
  const { kinds, objects } = server;
  for (const kind of kinds) {
    for (const object of objects.of(kind).list()) {
      if (object.metadata.namespace === namespace) objects.remove(kind, object);
      if (kind.plural === 'namespaces' && object.metadata.name === namespace) objects.remove(kind, object);
    }
  }
  return { code: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } };
}

/** Each namespace has a service account, as kube-controller-manager makes it. */
function provideAccounts(server: SimulatedAPIServer): void {
  server.objects.onChange(({ plural }, { type, object }) => {
    if (plural !== 'namespaces' || type !== 'ADDED') return;
    server.handle(creation(`/api/v1/namespaces/${object.metadata.name}/serviceaccounts`, 'default'));
  });
}

function creation(path: string, name: string): APIRequest {
  return { method: 'POST', path, body: { metadata: { name } } };
}

function schedule(timers: Set<NodeJS.Timeout>, delayMs: number, run: () => void): () => void {
  const timer = setTimeout(() => {
    timers.delete(timer);
    run();
  }, delayMs);
  timers.add(timer);
  return () => clearTimeout(timer);
}
