import type { Clock } from '../../clock/clock.ts';
import { DriverError } from '../../driver/error.ts';
import { type Answer, errorOf, NoAnswerError } from './answer.ts';
import { ServiceClient, unavailable } from './service-client.ts';
import type { Session } from './session.ts';
import { Unanswered } from './unanswered.ts';

/** What we read of Neutron's ports. */
export interface Port {
  readonly id: string;
  readonly network_id: string;
  readonly device_id: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly revision_number?: number;
  readonly fixed_ips: readonly { readonly ip_address: string }[];
}

/** What we read of Neutron's floating IPs. */
export interface FloatingIP {
  readonly id: string;
  readonly floating_ip_address: string;
  readonly port_id: string | null;
  readonly description: string;
}

/** What a port is made with. */
export interface WantedPort {
  readonly name: string;
  readonly networkID: string;
  readonly description: string;
  readonly subnetIDs: readonly string[];
  /** Undefined: Neutron's default group. */
  readonly securityGroupIDs: readonly string[] | undefined;
  /** From and to which packets may pass beside the port's own address. */
  readonly addressPairs: readonly string[];
}

/** Neutron, in one region. */
export class Network {
  readonly #client: ServiceClient;
  /** Requests for ports and floating IPs, by their descriptions. */
  readonly unanswered: Unanswered;

  constructor(session: Session, region: string, clock: Clock) {
    this.#client = new ServiceClient(session, 'network', region);
    this.unanswered = new Unanswered(clock);
  }

  async portsNamed(name: string, signal: AbortSignal): Promise<readonly Port[]> {
    return await this.#ports(`name=${encodeURIComponent(name)}`, signal);
  }

  async portsOfDevice(id: string, signal: AbortSignal): Promise<readonly Port[]> {
    return await this.#ports(`device_id=${encodeURIComponent(id)}`, signal);
  }

  async createPort(wanted: WantedPort, signal: AbortSignal): Promise<Port> {
    const body = { port: portBody(wanted) };
    return (await this.#make<{ port: Port }>('making the port', '/ports', body, wanted.description, signal)).port;
  }

  async tagPort(id: string, tags: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#client.call('tagging the port', 'PUT', `/ports/${id}/tags`, signal, { body: { tags } });
  }

  /** The answer, whatever it says: 412 when somebody else has changed the port since it was read, if it is told when that was. */
  async describePort(
    { id, revision_number: revision }: Pick<Port, 'id' | 'revision_number'>,
    description: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    const headers: Record<string, string> = revision === undefined ? {} : { 'if-match': `revision_number=${revision}` };
    return await this.#client.raw('PUT', `/ports/${id}`, signal, { body: { port: { description } }, headers });
  }

  /** One that is not there is deleted. */
  async deletePort(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.call('deleting the port', 'DELETE', `/ports/${id}`, signal, { allowed: [404] });
  }

  /** The network of a name. Throws InvalidArgument that names `path` unless there is exactly one. */
  async networkID(name: string, path: string, signal: AbortSignal): Promise<string> {
    const query = `/networks?fields=id&name=${encodeURIComponent(name)}`;
    const { networks } = await this.#client.get<{ networks: readonly { id: string }[] }>(
      'listing networks',
      query,
      signal,
    );
    return onlyID(networks, path, 'network', name);
  }

  /** IDs of security groups that are named by ID or name. Throws InvalidArgument that names `path`. */
  async securityGroupIDs(groups: readonly string[], path: string, signal: AbortSignal): Promise<readonly string[]> {
    const query = '/security-groups?fields=id&fields=name';
    const { security_groups: known } = await this.#client.get<{
      security_groups: readonly { id: string; name: string }[];
    }>('listing security groups', query, signal);
    return groups.map((group, i) => {
      const byID = known.find(({ id }) => id === group);
      return (
        byID?.id ??
        onlyID(
          known.filter(({ name }) => name === group),
          `${path}[${i}]`,
          'security group',
          group,
        )
      );
    });
  }

  /** Those with this description; none where the cloud has no routers. */
  async floatingIPs(
    by: { readonly description: string } | { readonly address: string },
    signal: AbortSignal,
  ): Promise<readonly FloatingIP[]> {
    const query =
      'description' in by
        ? `description=${encodeURIComponent(by.description)}`
        : `floating_ip_address=${encodeURIComponent(by.address)}`;
    const found = await this.#client.call<{ floatingips: readonly FloatingIP[] }>(
      'listing floating IPs',
      'GET',
      `/floatingips?${query}`,
      signal,
      { allowed: [404] },
    );
    return found?.floatingips ?? [];
  }

  async createFloatingIP(
    networkID: string,
    portID: string,
    description: string,
    signal: AbortSignal,
  ): Promise<FloatingIP> {
    const body = { floatingip: { floating_network_id: networkID, port_id: portID, description } };
    const what = 'allocating the floating IP';
    return (await this.#make<{ floatingip: FloatingIP }>(what, '/floatingips', body, description, signal)).floatingip;
  }

  /** Moves a floating IP to a port, or from any. */
  async associate(id: string, portID: string | null, signal: AbortSignal): Promise<void> {
    const body = { floatingip: { port_id: portID } };
    await this.#client.call('associating the floating IP', 'PUT', `/floatingips/${id}`, signal, {
      body,
      allowed: portID === null ? [404] : [],
    });
  }

  /** One that is not there is released. */
  async releaseFloatingIP(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.call('releasing the floating IP', 'DELETE', `/floatingips/${id}`, signal, { allowed: [404] });
  }

  async #make<T>(what: string, path: string, body: object, description: string, signal: AbortSignal): Promise<T> {
    const request = async (): Promise<Answer> => await this.#client.raw('POST', path, signal, { body });
    const answer = await this.unanswered.during(description, signal, request).catch((err: unknown) => {
      throw err instanceof NoAnswerError ? unavailable(what, err) : err;
    });
    if (answer.status >= 300) throw errorOf(answer, what);
    return answer.body as T; // what Neutron's documentation promises
  }

  async #ports(query: string, signal: AbortSignal): Promise<readonly Port[]> {
    return (await this.#client.get<{ ports: readonly Port[] }>('listing ports', `/ports?${query}`, signal)).ports;
  }
}

/** The body of the request for a port. */
function portBody({ name, networkID, description, subnetIDs, securityGroupIDs, addressPairs }: WantedPort): object {
  return {
    name,
    network_id: networkID,
    description,
    ...(subnetIDs.length === 0 ? {} : { fixed_ips: subnetIDs.map((id) => ({ subnet_id: id })) }),
    ...(securityGroupIDs === undefined ? {} : { security_groups: securityGroupIDs }),
    ...(addressPairs.length === 0 ? {} : { allowed_address_pairs: addressPairs.map((cidr) => ({ ip_address: cidr })) }),
  };
}

function onlyID(found: readonly { readonly id: string }[], path: string, kind: string, name: string): string {
  const [first, second] = found;
  if (first === undefined) throw new DriverError('InvalidArgument', `${path}: there is no ${kind} ${name}`);
  if (second !== undefined)
    throw new DriverError(
      'InvalidArgument',
      `${path}: there are ${found.length} of the name ${name}, use the ID of one`,
    );
  return first.id;
}
