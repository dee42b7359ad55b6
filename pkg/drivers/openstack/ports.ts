import { randomUUID } from 'node:crypto';

import { DriverError } from '../../driver/error.ts';
import { type Answer, errorOf, NoAnswerError } from './answer.ts';
import { intentText, leftMsOf, mayStillRequest, ownerText, parseIntent, readyMsOf } from './intent.ts';
import type { Port, DesiredPort } from './network.ts';
import { marksIn, type OpenStackSpec, PLAIN_PORT, type DesiredNetwork } from './provider-spec.ts';
import { orUnavailable, unavailable } from './service-client.ts';
import type { MachineOfCloud } from './settings.ts';

type Deps = Pick<MachineOfCloud, 'cloud' | 'machine' | 'clock' | 'settings'>;

/** What this process has written to a port: from when on there may be a server or disk. */
export interface Mark {
  readonly portID: string;
  readonly atMs: number;
  readonly by: string;
  /** How long Neutron took to note it, and to show that nobody else had. */
  readonly tookMs: number;
}

/** A port that somebody else writes to at the same time is read again so often. */
const ATTEMPTS = 5;

/**
 * The ports of one machine: one for each network, named like the machine and described as its own. The first one says when a server was
 * asked for (see intent.ts).
 */
export class Ports {
  readonly #deps: Deps;
  readonly #owner: string;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#owner = ownerText(deps.machine);
  }

  /** Those that are the machine's, and of those without description, which an earlier provider made, those that `isOurs`. */
  async list(signal: AbortSignal, isOurs: (port: Port) => boolean = () => false): Promise<readonly Port[]> {
    const { cloud, machine } = this.#deps;
    const named = await cloud.network.portsNamed(machine.name, signal);
    return named.filter((port) => this.#isOwn(port) || (parseIntent(port.description) === undefined && isOurs(port)));
  }

  /** The port of a server in the first network of its class; undefined when it has none there. */
  async first({ networks: [network] }: OpenStackSpec, server: string, signal: AbortSignal): Promise<Port | undefined> {
    if (network === undefined) return undefined;
    const bound = await this.#deps.cloud.network.portsOfDevice(server, signal);
    return firstPort(bound, await this.#networkID(network, 0, signal), this.#owner);
  }

  /**
   * The ports of a server, in networks of pods, that let no packets of pods pass: an earlier provider allows them last. Which ones it has allowed
   * is not compared: of several CIDRs it leaves one.
   */
  async closedToPods(spec: OpenStackSpec, server: string, signal: AbortSignal): Promise<readonly Port[]> {
    if (spec.podNetworkCIDRs.length === 0) return [];
    const bound = await this.#deps.cloud.network.portsOfDevice(server, signal);
    const closed = bound.filter(
      ({ port_security_enabled: isLimited, allowed_address_pairs: pairs = [] }) =>
        isLimited !== false && pairs.length === 0,
    );
    if (closed.length === 0) return [];
    const ofPods = new Set<string>();
    for (const [i, network] of spec.networks.entries())
      if (network.isPodNetwork) ofPods.add(await this.#networkID(network, i, signal));
    return closed.filter(({ network_id: network }) => ofPods.has(network));
  }

  /** How long a server that was asked for may still appear. */
  leftMs(ports: readonly Port[]): number {
    const { clock, settings } = this.#deps;
    return Math.max(0, ...ports.map((port) => leftMsOf(parseIntent(port.description), clock.now(), settings.answerMs)));
  }

  /** One for each network, those that are there first. Ports that are bound to a server are not to be used. */
  async ensure(spec: OpenStackSpec, known: readonly Port[], signal: AbortSignal): Promise<readonly [Port, ...Port[]]> {
    const { cloud, machine } = this.#deps;
    const networkIDs = await this.#networkIDs(spec, signal);
    const groups = await this.#securityGroups(spec, signal);
    const free = known.filter(({ device_id: device }) => device === '').toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const marks = marksIn(spec.tags);
    const ports: Port[] = [];
    for (const [i, networkID] of networkIDs.entries()) {
      const found = free.find((port) => port.network_id === networkID && !ports.includes(port));
      const wanted: DesiredPort = {
        name: machine.name,
        networkID,
        description: this.#owner,
        subnetIDs: spec.subnetIDs,
        securityGroupIDs: groups[i],
        addressPairs: spec.networks[i]?.isPodNetwork === true ? spec.podNetworkCIDRs : [],
        settings: spec.networks[i]?.port ?? PLAIN_PORT,
      };
      const port = found ?? (await cloud.network.createPort(wanted, signal));
      if (!marks.every((mark) => port.tags?.includes(mark) === true))
        await cloud.network.tagPort(port.id, marks, signal);
      ports.push(port);
    }
    return ports as [Port, ...Port[]]; // a spec has at least one network
  }

  /**
   * Writes to the first port that a server, or its disk, is asked for from now on. Throws Aborted when somebody else has done so: of two processes
   * that work on one machine, each writes before it looks, so that at least one of them sees the other.
   */
  async mark(ports: readonly [Port, ...Port[]], signal: AbortSignal): Promise<Mark> {
    const { cloud, clock } = this.#deps;
    const [{ id }] = ports;
    const by = randomUUID();
    const atMs = await this.#describe(id, by, signal);
    const others = (await this.list(signal)).filter((port) => !ports.some((own) => own.id === port.id));
    const mark = { portID: id, atMs, by, tookMs: clock.now() - atMs };
    if (this.leftMs(others) > 0) {
      await this.unmark(mark, signal);
      throw new DriverError('Aborted', 'another process is creating the server of this machine');
    }
    // Whoever made these will not find them when it is to mark them.
    for (const other of others) if (other.device_id === '') await cloud.network.deletePort(other.id, signal);
    return mark;
  }

  /** Takes our mark back: the answer is known. Nobody else writes over a mark, so that nothing has to be compared. */
  async unmark({ portID }: Mark, signal: AbortSignal): Promise<void> {
    await this.#write({ id: portID }, this.#owner, signal);
  }

  /** Sends what may make something although it is not answered. The mark is left where that may be. */
  async send(what: string, mark: Mark, request: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    await this.#requireFresh(mark, what, signal);
    try {
      return await request();
    } catch (err) {
      if (!(err instanceof NoAnswerError)) throw err;
      if (!err.wasSent) await this.unmark(mark, signal);
      throw unavailable(what, err);
    }
  }

  /** Throws Unavailable, and takes the mark back, when it is too old for a request that may go unanswered. */
  async #requireFresh(mark: Mark, what: string, signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#deps;
    const tookMs = clock.now() - mark.atMs;
    if (mayStillRequest(mark.atMs, clock.now(), settings.answerMs)) return;
    // One that has ended may have been written over.
    const port = (await this.list(signal)).find(({ id }) => id === mark.portID);
    const isOurs = port !== undefined && parseIntent(port.description)?.sent?.by === mark.by;
    if (isOurs) await this.#write(port, this.#owner, signal);
    const [neutron, all] = [mark.tookMs, tookMs].map((ms) => Math.round(ms / 1_000));
    const limit = Math.round(readyMsOf(settings.answerMs) / 1_000);
    const text = `not requested: recording it at the port took Neutron ${neutron} s, and the preparation ${all} s in total, of at most ${limit} s`;
    throw new DriverError('Unavailable', `${what}: ${text}; increase --answer-timeout of the driver for slow services`);
  }

  /** Writes that something is asked for from now on; says when. Reading the port first takes time that the mark is not limited to. */
  async #describe(id: string, by: string, signal: AbortSignal): Promise<number> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const port = (await this.list(signal)).find((one) => one.id === id);
      if (port === undefined || this.leftMs([port]) > 0)
        throw new DriverError('Aborted', 'another process is creating the server of this machine');
      const atMs = this.#deps.clock.now();
      const description = intentText({ owner: this.#owner, sent: { atMs, by } });
      if (await this.#write(port, description, signal)) return atMs;
    }
    throw new DriverError('Aborted', 'writing to the port: it keeps changing');
  }

  /** False: somebody else has changed the port since it was read. */
  async #write(port: Pick<Port, 'id' | 'revision_number'>, description: string, signal: AbortSignal): Promise<boolean> {
    const what = 'writing to the port';
    const answer = await this.#deps.cloud.network.describePort(port, description, signal).catch(orUnavailable(what));
    if (answer.status === 412) return false;
    if (answer.status === 404) throw new DriverError('Aborted', `${what}: it no longer exists`);
    if (answer.status >= 300) throw errorOf(answer, what);
    return true;
  }

  #isOwn({ description }: Port): boolean {
    return parseIntent(description)?.owner === this.#owner;
  }

  async #networkIDs({ networks }: OpenStackSpec, signal: AbortSignal): Promise<readonly string[]> {
    const ids: string[] = [];
    for (const [i, network] of networks.entries()) ids.push(await this.#networkID(network, i, signal));
    return ids;
  }

  async #networkID({ by, value }: DesiredNetwork, index: number, signal: AbortSignal): Promise<string> {
    if (by === 'id') return value;
    const { cloud } = this.#deps;
    const path = `providerSpec.spec.networks[${index}].name`;
    const find = (shared: AbortSignal): Promise<string> => cloud.network.networkID(value, path, shared);
    return await cloud.names.get(`network ${value}`, signal, find);
  }

  /** Those of each network's port, as IDs; undefined where Neutron has its default. */
  async #securityGroups(
    { networks, securityGroups }: OpenStackSpec,
    signal: AbortSignal,
  ): Promise<readonly (readonly string[] | undefined)[]> {
    const ids: (readonly string[] | undefined)[] = [];
    for (const [i, { port }] of networks.entries()) {
      const path = port.securityGroups === undefined ? 'securityGroups' : `networks[${i}].securityGroups`;
      const wanted = port.hasPortSecurity === false ? [] : (port.securityGroups ?? securityGroups);
      ids.push(await this.#securityGroupIDs(wanted, `providerSpec.spec.${path}`, signal));
    }
    return ids;
  }

  async #securityGroupIDs(
    groups: readonly string[],
    path: string,
    signal: AbortSignal,
  ): Promise<readonly string[] | undefined> {
    if (groups.length === 0) return undefined;
    const { cloud } = this.#deps;
    return await cloud.names.get(`groups ${path} ${JSON.stringify(groups)}`, signal, (shared) =>
      cloud.network.securityGroupIDs(groups, path, shared),
    );
  }
}

/** Of the ports of a server the one in a network, rather one that was made for it than one that was added later. Neutron lists them in any order. */
export function firstPort(bound: readonly Port[], networkID: string, owner: string): Port | undefined {
  const there = bound.filter(({ network_id: network }) => network === networkID);
  return there.find(({ description }) => parseIntent(description)?.owner === owner) ?? there[0];
}
