import { DriverError } from '../../driver/error.ts';
import { type Answer, errorOf } from './answer.ts';
import { allOf } from './pages.ts';
import type { DesiredPortSettings } from './provider-spec.ts';
import { ServiceClient, orUnavailable } from './service-client.ts';
import type { Session } from './session.ts';
import type { UnansweredRequests } from './unanswered.ts';

/** What we read of Neutron's ports. */
export interface Port {
  readonly id: string;
  readonly network_id: string;
  readonly device_id: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly revision_number?: number;
  readonly fixed_ips: readonly { readonly ip_address: string }[];
  readonly port_security_enabled?: boolean;
  readonly allowed_address_pairs?: readonly object[];
}

/** What we read of Neutron's floating IPs. */
export interface FloatingIP {
  readonly id: string;
  readonly floating_ip_address: string;
  readonly port_id: string | null;
  readonly description: string;
}

interface SecurityGroup {
  readonly id: string;
  readonly name: string;
  readonly project_id?: string;
}

export interface DesiredPort {
  readonly name: string;
  readonly networkID: string;
  readonly description: string;
  readonly subnetIDs: readonly string[];
  /** Undefined: Neutron's default group. */
  readonly securityGroupIDs: readonly string[] | undefined;
  /** From and to which packets may pass beside the port's own address. */
  readonly addressPairs: readonly string[];
  /** What else its network's entry of the class says. */
  readonly settings: Omit<DesiredPortSettings, 'securityGroups'>;
}

/** Neutron, in one region. */
export class Network {
  readonly #client: ServiceClient;
  readonly #session: Session;
  /** Members of one page. */
  readonly #pageSize: number;
  /** Requests for ports and floating IPs, by their descriptions. */
  readonly unanswered: UnansweredRequests;

  constructor(session: Session, region: string, unanswered: UnansweredRequests, pageSize: number) {
    this.#client = new ServiceClient(session, 'network', region);
    this.#session = session;
    this.#pageSize = pageSize;
    this.unanswered = unanswered;
  }

  async portsNamed(name: string, signal: AbortSignal): Promise<readonly Port[]> {
    return await this.#ports(`name=${encodeURIComponent(name)}`, signal);
  }

  async portsOfDevice(id: string, signal: AbortSignal): Promise<readonly Port[]> {
    return await this.#ports(`device_id=${encodeURIComponent(id)}`, signal);
  }

  /** Undefined for one that is not there. */
  async port(id: string, signal: AbortSignal): Promise<Port | undefined> {
    const path = `/ports/${encodeURIComponent(id)}`;
    const found = await this.#client.call<{ port: Port }>('reading the port', 'GET', path, signal, { allowed: [404] });
    return found?.port;
  }

  async createPort(wanted: DesiredPort, signal: AbortSignal): Promise<Port> {
    const body = { port: portBody(wanted) };
    return (await this.#make<{ port: Port }>('creating the port', '/ports', body, wanted.description, signal)).port;
  }

  /** For an earlier provider, which finds them so; we need none, and a Neutron without tags says 404. */
  async tagPort(id: string, tags: readonly string[], signal: AbortSignal): Promise<void> {
    const more = { body: { tags }, allowed: [404] };
    await this.#client.call('tagging the port', 'PUT', `/ports/${id}/tags`, signal, more);
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

  /** From and to which packets may pass beside the port's own address. */
  async allowAddresses(id: string, cidrs: readonly string[], signal: AbortSignal): Promise<void> {
    const body = { port: { allowed_address_pairs: pairsOf(cidrs) } };
    await this.#client.call('allowing addresses of pods at the port', 'PUT', `/ports/${id}`, signal, { body });
  }

  /** One that is not there is deleted. */
  async deletePort(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.call('deleting the port', 'DELETE', `/ports/${id}`, signal, { allowed: [404] });
  }

  /** The network of a name. Throws InvalidArgument that names `path` unless there is exactly one. */
  async networkID(name: string, path: string, signal: AbortSignal): Promise<string> {
    const query = `/networks?fields=id&name=${encodeURIComponent(name)}`;
    const networks = await this.#all<{ id: string }>('listing networks', query, 'networks', signal);
    return onlyID(networks, path, 'network', name);
  }

  /**
   * IDs of security groups that are named by ID or name. A name is one of the project's: groups of others, which an administrator sees or
   * which are shared, are taken by ID, or by a name that none of the project has. Throws InvalidArgument that names `path`.
   */
  async securityGroupIDs(groups: readonly string[], path: string, signal: AbortSignal): Promise<readonly string[]> {
    const query = '/security-groups?fields=id&fields=name&fields=project_id';
    const known = await this.#all<SecurityGroup>('listing security groups', query, 'security_groups', signal);
    const project = await this.#session.projectID(signal);
    return groups.map((group, i) => {
      if (known.some(({ id }) => id === group)) return group;
      const named = known.filter(({ name }) => name === group);
      const own = named.filter(({ project_id: of }) => of === project);
      return onlyID(own.length > 0 ? own : named, `${path}[${i}]`, 'security group', group);
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
    return await this.#all<FloatingIP>('listing floating IPs', `/floatingips?${query}`, 'floatingips', signal, 404);
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
    const answer = await this.unanswered.during(description, signal, request).catch(orUnavailable(what));
    if (answer.status >= 300) throw errorOf(answer, what);
    return answer.body as T; // what Neutron's documentation promises
  }

  async #ports(query: string, signal: AbortSignal): Promise<readonly Port[]> {
    return await this.#all<Port>('listing ports', `/ports?${query}`, 'ports', signal);
  }

  async #all<T extends { readonly id: string }>(
    what: string,
    path: string,
    member: string,
    signal: AbortSignal,
    none?: number,
  ): Promise<readonly T[]> {
    const list = { what, path, member, pageSize: this.#pageSize, ...(none === undefined ? {} : { none }) };
    return await allOf<T>(this.#client, list, signal);
  }
}

/** Without port security Neutron takes neither groups nor addresses beside the port's own, and limits nothing. */
function portBody(wanted: DesiredPort): object {
  const { name, networkID, description, subnetIDs, securityGroupIDs, addressPairs, settings } = wanted;
  const { hasPortSecurity, vnicType, profile, fixedIP } = settings;
  const isLimited = hasPortSecurity !== false;
  const fixedIPs = fixedIP === undefined ? subnetIDs.map((id) => ({ subnet_id: id })) : [{ ip_address: fixedIP }];
  const pairs = pairsOf(addressPairs);
  return {
    name,
    network_id: networkID,
    description,
    ...(fixedIPs.length === 0 ? {} : { fixed_ips: fixedIPs }),
    ...(securityGroupIDs === undefined || !isLimited ? {} : { security_groups: securityGroupIDs }),
    ...(pairs.length === 0 || !isLimited ? {} : { allowed_address_pairs: pairs }),
    ...(hasPortSecurity === undefined ? {} : { port_security_enabled: hasPortSecurity }),
    ...(vnicType === undefined ? {} : { 'binding:vnic_type': vnicType }),
    ...(profile === undefined ? {} : { 'binding:profile': profile }),
  };
}

function pairsOf(cidrs: readonly string[]): readonly object[] {
  return cidrs.map((cidr) => ({ ip_address: cidr }));
}

function onlyID(found: readonly { readonly id: string }[], path: string, kind: string, name: string): string {
  const [first, second] = found;
  if (first === undefined) throw new DriverError('InvalidArgument', `${path}: there is no ${kind} ${name}`);
  if (second !== undefined)
    throw new DriverError('InvalidArgument', `${path}: ${found.length} have the name ${name}, use the ID of one`);
  return first.id;
}
