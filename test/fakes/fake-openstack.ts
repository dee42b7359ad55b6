import { Cloud } from '../../pkg/drivers/openstack/cloud.ts';
import { type Answer, NoAnswerError } from '../../pkg/drivers/openstack/answer.ts';
import type { FloatingIP, Port } from '../../pkg/drivers/openstack/network.ts';
import type { Server } from '../../pkg/drivers/openstack/server.ts';
import type { ServiceRequest, Session } from '../../pkg/drivers/openstack/session.ts';
import type { Volume } from '../../pkg/drivers/openstack/volume.ts';
import type { FakeClock } from './fake-clock.ts';

/** So much later a request arrives that is late. */
const LATE_MS = 60_000;

type Fields = Readonly<Record<string, unknown>>;
type Kind = 'servers' | 'ports' | 'floatingips' | 'volumes' | 'attachments';

export interface FakeAttachment {
  readonly id: string;
  readonly instance: string | null;
  readonly volume_id: string;
  readonly connection_info: object;
}

/**
 * A cloud without services: what the driver sends to Nova, Neutron and Cinder is answered from tables, so that a unit test sees every request.
 * It knows as much as the tests need; what services really answer is shown by test/openstack.
 */
export class FakeOpenStack {
  readonly clock: FakeClock;
  servers: Server[] = [];
  ports: (Port & Fields)[] = [];
  floatingips: FloatingIP[] = [];
  volumes: Volume[] = [];
  attachments: FakeAttachment[] = [];
  /** Requests, as `POST network /ports`; lists carry their query. */
  readonly asked: string[] = [];
  /** The bodies of requests that make something, by the kind of what they make. */
  readonly bodies: { readonly path: string; readonly body: Fields }[] = [];
  /** Answers in the place of a service, or happens before it; undefined: the service answers. */
  answer: (request: string, body: unknown, headers: ServiceRequest['headers']) => Answer | undefined = () => undefined;
  /** What is lost of a request: it never arrives, its answer does not, or it arrives a minute later. */
  loses: (request: string) => 'request' | 'answer' | 'late' | undefined = () => undefined;
  /** The status that Nova gives a server that is deleted; undefined: it is gone. */
  deletedStatus: string | undefined;
  #made = 0;

  constructor(clock: FakeClock) {
    this.clock = clock;
  }

  cloud(pageSize = 500): Cloud {
    const session = {
      send: async (request: ServiceRequest) => await Promise.resolve(this.#send(request)),
      offers: async () => await Promise.resolve(true),
      projectID: async () => await Promise.resolve('project'),
      doesSchedulingAnswer: async () => await Promise.resolve(true),
      close: async () => await Promise.resolve(),
    };
    return new Cloud(session as unknown as Session, 'region', this.clock, pageSize);
  }

  /** What a call of the driver becomes, while time passes as long as it waits. */
  async passing<T>(work: Promise<T>): Promise<PromiseSettledResult<T>> {
    const settled = Promise.allSettled([work]);
    const isDone = async (): Promise<boolean> =>
      await Promise.race([settled.then(() => true), this.clock.advanceAsync(500).then(() => false)]);
    while (!(await isDone()));
    const [result] = await settled;
    return result;
  }

  /** Those of the requests that begin with a method and service. */
  askedFor(start: string): readonly string[] {
    return this.asked.filter((request) => request.startsWith(start));
  }

  #send(sent: ServiceRequest): Answer {
    const request = textOf(sent);
    this.asked.push(request);
    const lost = this.loses(request);
    if (lost === 'late') this.clock.schedule(LATE_MS, () => void this.serve(sent));
    const answer = lost === 'request' || lost === 'late' ? undefined : this.serve(sent);
    if (lost !== undefined || answer === undefined) throw new NoAnswerError(`no answer to ${request}`, true);
    return answer;
  }

  /** What the service answers to a request that arrives. */
  serve({ service, method, path, body, headers }: Omit<ServiceRequest, 'region' | 'signal'>): Answer {
    const request = textOf({ service, method, path });
    const { pathname, searchParams: query } = new URL(path, 'http://cloud');
    if (method === 'POST') this.bodies.push({ path: pathname, body: (body ?? {}) as Fields });
    const told = this.answer(request, body, headers);
    if (told !== undefined) return told;
    const [, kind = '', id = '', action = ''] = pathname.split('/');
    if (service === 'compute' && pathname === '/') return ok({ version: { version: '2.93' } });
    if (kind === 'flavors') return ok({ flavors: [{ id: 'f-1', name: 'f' }] });
    if (kind === 'os-availability-zone') return ok({ availabilityZoneInfo: [{ zoneName: 'z' }] });
    if (kind === 'networks') return ok({ networks: [{ id: `id-of-${query.get('name')}` }] });
    if (!isKind(kind)) return { status: 404, headers: {}, body: { itemNotFound: { message: path } } };
    if (action === 'action') return this.#delete(kind, id, true);
    if (method === 'POST') return this.#make(kind, Object.values((body ?? {}) as Fields)[0] as Fields);
    if (id === '' || id === 'detail') return ok({ [kind]: this.#found(kind, query) });
    return this.#one(kind, method, id, body);
  }

  #found(kind: Kind, query: URLSearchParams): readonly Fields[] {
    const filters = [...query].filter(([name]) => !['limit', 'marker', 'fields', 'tags'].includes(name));
    const isFound = (one: Fields): boolean =>
      filters.every(([name, value]) => (name === 'name' ? value.includes(String(one['name'])) : one[name] === value));
    const all = this.#all(kind).filter((one) => isFound(one) && one['status'] !== 'SOFT_DELETED');
    const after = all.findIndex(({ id }) => id === query.get('marker')) + 1;
    return all.slice(after, after + Number(query.get('limit') ?? '500'));
  }

  #one(kind: Kind, method: string, id: string, body: unknown): Answer {
    const found = this.#all(kind).find((one) => one['id'] === id);
    if (found === undefined) return { status: 404, headers: {}, body: { itemNotFound: { message: id } } };
    if (method === 'GET') return ok({ [kind.slice(0, -1)]: found });
    if (method === 'DELETE') return this.#delete(kind, id);
    const change = Object.values((body ?? {}) as Fields)[0];
    if (typeof change === 'object' && !Array.isArray(change)) this.#put(kind, { ...found, ...change });
    return ok({});
  }

  #delete(kind: Kind, id: string, isForGood = false): Answer {
    const found = this.#all(kind).find((one) => one['id'] === id) ?? {};
    const isKept = kind === 'servers' && this.deletedStatus !== undefined && !isForGood;
    if (isKept) this.#put(kind, { ...found, status: this.deletedStatus });
    else
      this.#set(
        kind,
        this.#all(kind).filter((one) => one['id'] !== id),
      );
    if (kind === 'ports')
      this.floatingips = this.floatingips.map((one) => (one.port_id === id ? { ...one, port_id: null } : one));
    if (kind === 'attachments') this.#free(String(found['volume_id']));
    if (kind === 'servers' && !isKept)
      for (const { instance, volume_id: volume } of this.attachments) if (instance === id) this.#free(volume);
    return { status: 204, headers: {}, body: '' };
  }

  #free(volume: string): void {
    this.attachments = this.attachments.filter(({ volume_id: of }) => of !== volume);
    this.volumes = this.volumes.map((one) =>
      one.id === volume ? { ...one, status: 'available', attachments: [] } : one,
    );
  }

  #make(kind: Kind, fields: Fields): Answer {
    const id = `${kind.slice(0, -1)}-${++this.#made}`;
    const more: Readonly<Partial<Record<Kind, Fields>>> = {
      servers: { status: 'ACTIVE', created: '2026-01-01T00:00:00Z', addresses: {}, 'OS-SRV-USG:launched_at': 'x' },
      ports: { device_id: '', revision_number: 7, fixed_ips: [{ ip_address: '10.0.0.7' }], tags: [] },
      floatingips: { floating_ip_address: `172.24.4.${this.#made}` },
      volumes: { status: 'available' },
    };
    const made = { ...fields, ...more[kind], id };
    this.#set(kind, [...this.#all(kind), made]);
    if (kind === 'servers')
      for (const { port } of (fields['networks'] ?? []) as readonly { port: string }[])
        this.ports = this.ports.map((one) => (one.id === port ? { ...one, device_id: id } : one));
    return { status: 202, headers: {}, body: { [kind === 'floatingips' ? 'floatingip' : kind.slice(0, -1)]: made } };
  }

  #all(kind: Kind): readonly Fields[] {
    return this[kind] as unknown as readonly Fields[];
  }

  #set(kind: Kind, all: readonly Fields[]): void {
    (this as unknown as Record<Kind, readonly Fields[]>)[kind] = all;
  }

  #put(kind: Kind, one: Fields): void {
    this.#set(
      kind,
      this.#all(kind).map((other) => (other['id'] === one['id'] ? one : other)),
    );
  }
}

function textOf({ service, method, path }: Pick<ServiceRequest, 'service' | 'method' | 'path'>): string {
  return `${method} ${service} ${path}`;
}

function ok(body: object): Answer {
  return { status: 200, headers: {}, body };
}

function isKind(kind: string): kind is Kind {
  return ['servers', 'ports', 'floatingips', 'volumes', 'attachments'].includes(kind);
}
