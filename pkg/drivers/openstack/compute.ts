import { DriverError } from '../../driver/error.ts';
import { abortable, SHARED_MS } from './abortable.ts';
import { type Answer, errorOf } from './answer.ts';
import { allOf } from './pages.ts';
import type { Server } from './server.ts';
import { ServiceClient, orUnavailable } from './service-client.ts';
import type { Session } from './session.ts';

/** With tags at creation (2.52), and flavors in servers (2.47). */
const WANTED = 2_053;
const VERSION_HEADER = 'openstack-api-version';

interface VersionDocument {
  readonly version?: { readonly version?: string };
}

/** Nova, in one region. */
export class Compute {
  readonly #client: ServiceClient;
  /** Servers of one page. */
  readonly #pageSize: number;
  #headers: Promise<Readonly<Record<string, string>>> | undefined;

  constructor(session: Session, region: string, pageSize: number) {
    this.#client = new ServiceClient(session, 'compute', region);
    this.#pageSize = pageSize;
  }

  /** Whether servers have tags: Nova is new enough. */
  async hasTags(signal: AbortSignal): Promise<boolean> {
    return VERSION_HEADER in (await this.#version(signal));
  }

  /** Undefined for one that is not there. */
  async server(id: string, signal: AbortSignal): Promise<Server | undefined> {
    const headers = await this.#version(signal);
    const path = `/servers/${encodeURIComponent(id)}`;
    const found = await this.#client.call<{ server: Server }>('reading the server', 'GET', path, signal, {
      headers,
      allowed: [404],
    });
    return found?.server;
  }

  /** Those of exactly this name. */
  async serversNamed(name: string, signal: AbortSignal): Promise<readonly Server[]> {
    // Nova takes a regular expression; old ones and SQLite ignore more or less of it.
    const pattern = encodeURIComponent(`^${name.replaceAll('.', String.raw`\.`)}$`);
    return (await this.#list(`name=${pattern}`, signal)).filter((server) => server.name === name);
  }

  /** Those of a project, or of them those with a tag, from all pages. */
  async servers(tag: string | undefined, signal: AbortSignal): Promise<readonly Server[]> {
    const hasTags = tag !== undefined && (await this.hasTags(signal));
    return await this.#list(hasTags ? `tags=${encodeURIComponent(tag)}` : '', signal);
  }

  /** The answer, whatever it says. */
  async create(body: object, signal: AbortSignal): Promise<Answer> {
    return await this.#client.raw('POST', '/servers', signal, { body, headers: await this.#version(signal) });
  }

  /** One that is not there is deleted. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.call('deleting the server', 'DELETE', `/servers/${encodeURIComponent(id)}`, signal, {
      allowed: [404],
    });
  }

  /** Deletes a server that Nova has kept after its deletion. Says whether that is allowed; one that is not there is deleted. */
  async deleteForGood(id: string, signal: AbortSignal): Promise<boolean> {
    const what = 'deleting the server for good';
    const path = `/servers/${encodeURIComponent(id)}/action`;
    const answer = await this.#client
      .raw('POST', path, signal, { body: { forceDelete: null } })
      .catch(orUnavailable(what));
    if (answer.status === 403) return false;
    if (answer.status < 300 || answer.status === 404) return true;
    throw errorOf(answer, what);
  }

  /** Throws ResourceExhausted when there is none, as Gardener's provider does: flavors are withdrawn when nothing is left. */
  async flavorID(name: string, signal: AbortSignal): Promise<string> {
    for (let marker = ''; ;) {
      const path = `/flavors?limit=${this.#pageSize}${marker}`;
      const { flavors } = await this.#client.get<{ flavors: readonly { id: string; name: string }[] }>(
        'listing flavors',
        path,
        signal,
      );
      const found = flavors.find((flavor) => flavor.name === name);
      if (found !== undefined) return found.id;
      const last = flavors.at(-1);
      if (last === undefined)
        throw new DriverError('ResourceExhausted', `providerSpec.spec.flavorName: there is no flavor ${name}`);
      marker = `&marker=${encodeURIComponent(last.id)}`;
    }
  }

  /** The server group of a name. Throws InvalidArgument unless there is exactly one. */
  async serverGroupID(name: string, signal: AbortSignal): Promise<string> {
    type Group = { readonly id: string; readonly name: string };
    const groups = new Map<string, Group>();
    for (let isNews = true; isNews;) {
      const path = `/os-server-groups?limit=${this.#pageSize}&offset=${groups.size}`;
      const what = 'listing server groups';
      const page = await this.#client.get<{ readonly server_groups: readonly Group[] }>(what, path, signal);
      isNews = page.server_groups.some(({ id }) => !groups.has(id));
      for (const group of page.server_groups) groups.set(group.id, group);
    }
    const [first, second] = [...groups.values()].filter((group) => group.name === name);
    const at = 'providerSpec.spec.serverGroupName';
    if (first === undefined) throw new DriverError('InvalidArgument', `${at}: there is no server group ${name}`);
    if (second !== undefined)
      throw new DriverError('InvalidArgument', `${at}: several have the name ${name}, use serverGroupID`);
    return first.id;
  }

  async #list(query: string, signal: AbortSignal): Promise<readonly Server[]> {
    const headers = await this.#version(signal);
    const list = { what: 'listing servers', path: `/servers/detail?${query}`, member: 'servers', headers };
    return await allOf<Server>(this.#client, { ...list, pageSize: this.#pageSize }, signal);
  }

  /** The headers that ask for the version of the API which we want, none where Nova is older. */
  async #version(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    this.#headers ??= this.#negotiate(AbortSignal.timeout(SHARED_MS)).catch((err: unknown) => {
      this.#headers = undefined;
      throw err;
    });
    return await abortable(this.#headers, signal);
  }

  async #negotiate(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    // The endpoint may end with a project, which has no document of the version.
    for (const path of ['/', '/../']) {
      const what = 'reading the version of the compute service';
      const found = await this.#client.call<VersionDocument>(what, 'GET', path, signal, { allowed: [400, 404] });
      const version = found?.version?.version;
      if (version !== undefined) return isAtLeast(version) ? { [VERSION_HEADER]: 'compute 2.53' } : {};
    }
    return {};
  }
}

function isAtLeast(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 1_000 + minor >= WANTED;
}
