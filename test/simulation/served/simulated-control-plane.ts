import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Connection, pkiDirectory } from '../../../hack/control-plane/connection.ts';
import { pkiFiles, readCredential } from '../../../hack/control-plane/pki.ts';
import { type APIAnswer, type APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { BUILT_IN, custom, type Definition, definitionsIn, type Kind } from '../api-server/kinds.ts';
import { jsonPatched } from '../api-server/patch/json-patch.ts';
import { collectGarbage } from '../world/garbage-collector.ts';
import { emptyNamespaces } from '../world/namespace-controller.ts';
import { Authorizer, RBAC_KINDS } from './authorizer.ts';
import { appliesDefinition, DEFINITION_KIND, Definitions } from './definitions.ts';
import { HTTPSFront } from './https-front.ts';
import { INERT_KINDS } from './inert-kinds.ts';
import { ACCOUNT_KIND, creation, ServiceAccounts } from './service-accounts.ts';
import { authenticator, type User } from './users.ts';

const MORE: readonly Kind[] = [...RBAC_KINDS, DEFINITION_KIND, ACCOUNT_KIND, ...INERT_KINDS];
const parsed = new Map<string, Defined>();
const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** What is changed in each object of a kind as it is created: as a mutating webhook does. */
export interface CreationChange {
  readonly namespace: string;
  /** Of `machine.sapcloud.io`. */
  readonly plural: string;
  /** A JSON patch. */
  readonly patch: readonly { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }[];
}

/** What it has besides an API server. */
export interface SimulatedOptions {
  /** Whether a namespace that is deleted ends as a cluster ends it; else it is gone at once, with all that is in it. */
  readonly endsNamespaces?: boolean | undefined;
}

/**
 * A simulated API server that is reached as a real one is, over HTTPS and with the certificates and tokens of one, and that obeys roles. Of
 * kube-controller-manager it has the garbage collector and, if asked for, the namespace controller. Time is the host's.
 */
export class SimulatedControlPlane implements AsyncDisposable {
  readonly connection: Connection;
  readonly #front: HTTPSFront;
  readonly #timers: Set<NodeJS.Timeout>;
  readonly #changes: Set<CreationChange>;

  private constructor({ connection, front, timers, changes }: Running) {
    this.connection = connection;
    this.#front = front;
    this.#timers = timers;
    this.#changes = changes;
  }

  /** Takes whoever `real` takes, and has the definitions of a folder. */
  static async start(
    real: Connection,
    folder: string,
    { endsNamespaces = false }: SimulatedOptions = {},
  ): Promise<SimulatedControlPlane> {
    const directory = mkdtempSync(join(tmpdir(), 'simulated-control-plane-'));
    cpSync(pkiDirectory(real.directory), pkiDirectory(directory), { recursive: true });
    const files = pkiFiles(pkiDirectory(directory));
    const defined = definedIn(folder);
    const kinds = [...BUILT_IN, ...defined.kinds, ...MORE];
    const server = new SimulatedAPIServer({
      kinds,
      nowMs: () => Date.now(),
      uid: () => randomUUID(),
      suffix: () => randomBytes(3).toString('hex').slice(1),
    });
    const timers = new Set<NodeJS.Timeout>();
    const changes = new Set<CreationChange>();
    const time = { schedule: (delayMs: number, run: () => void) => schedule(timers, delayMs, run) };
    collectGarbage(server, time);
    if (endsNamespaces) emptyNamespaces(server, time, Math.random);
    const accounts = new ServiceAccounts(server);
    for (const name of NAMESPACES) server.handle(creation('/api/v1/namespaces', name));
    const definitions = new Definitions(server, kinds, (run, delayMs = 0) => void schedule(timers, delayMs, run));
    definitions.store(defined.definitions);
    const authorizer = new Authorizer(server);
    const front = await HTTPSFront.open<User>({
      credential: readCredential(files.server, files.serverKey),
      clientCA: real.ca,
      authenticate: authenticator(files.tokens, accounts),
      handle: (request, user) => {
        return answer({ server, definitions, authorizer, accounts, changes, endsNamespaces }, request, user);
      },
      port: 0,
    });
    const connection = await Connection.create(directory, { url: front.url, programs: real.programs }, real.admin);
    return new SimulatedControlPlane({ connection, front, timers, changes });
  }

  /** Until that is disposed of. */
  changeOnCreation(change: CreationChange): AsyncDisposable {
    this.#changes.add(change);
    return { [Symbol.asyncDispose]: () => Promise.resolve(void this.#changes.delete(change)) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#front[Symbol.asyncDispose]();
    rmSync(this.connection.directory, { recursive: true });
  }
}

interface Defined {
  readonly definitions: readonly Definition[];
  readonly kinds: readonly Kind[];
}

/** Parsed once a process. */
function definedIn(folder: string): Defined {
  const known = parsed.get(folder);
  if (known !== undefined) return known;
  const definitions = definitionsIn(folder);
  const defined = { definitions, kinds: definitions.flatMap(custom) };
  parsed.set(folder, defined);
  return defined;
}

interface Running {
  readonly connection: Connection;
  readonly front: HTTPSFront;
  readonly timers: Set<NodeJS.Timeout>;
  readonly changes: Set<CreationChange>;
}

interface Parts {
  readonly server: SimulatedAPIServer;
  readonly definitions: Definitions;
  readonly authorizer: Authorizer;
  readonly accounts: ServiceAccounts;
  readonly changes: ReadonlySet<CreationChange>;
  readonly endsNamespaces: boolean;
}

function answer(parts: Parts, request: APIRequest, user: User): APIAnswer {
  const { server, definitions, authorizer, accounts, changes, endsNamespaces } = parts;
  const review = authorizer.review(request, user);
  if (review !== undefined) return { code: 201, body: review };
  authorizer.require(request, user);
  const { method, path } = request;
  if (appliesDefinition(request)) return definitions.apply(request);
  const token = accounts.tokenFor(request);
  if (token !== undefined) return token;
  const [, namespace] =
    method === 'DELETE' && !endsNamespaces ? (/^\/api\/v1\/namespaces\/([^/?]+)$/.exec(path) ?? []) : [];
  return namespace === undefined ? server.handle(changed(request, changes)) : erased(server, namespace);
}

function changed(request: APIRequest, changes: ReadonlySet<CreationChange>): APIRequest {
  const [path = ''] = request.path.split('?', 1);
  let { body } = request;
  for (const { namespace, plural, patch } of request.method === 'POST' ? changes : []) {
    if (path.endsWith(`/machine.sapcloud.io/v1alpha1/namespaces/${namespace}/${plural}`))
      body = jsonPatched(body, patch);
  }
  return { ...request, body };
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

function schedule(timers: Set<NodeJS.Timeout>, delayMs: number, run: () => void): () => void {
  const timer = setTimeout(() => {
    timers.delete(timer);
    run();
  }, delayMs);
  timers.add(timer);
  return () => clearTimeout(timer);
}
