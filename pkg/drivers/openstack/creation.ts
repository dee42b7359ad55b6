import { shortText } from '../../apis/short-text.ts';
import type { DriverCall } from '../../driver/driver.ts';
import { DriverError } from '../../driver/error.ts';
import { type Answer, codeOfFault, errorOf } from './answer.ts';
import type { Cloud } from './cloud.ts';
import { ensureDisks, type MachineDisks } from './disks.ts';
import type { FailedBuilds } from './failed-builds.ts';
import { ensureFloatingIP, type FloatingIPDeps, releaseFloatingIPs } from './floating-ip.ts';
import { imageIDOf } from './image.ts';
import { ownerText } from './intent.ts';
import type { Port } from './network.ts';
import { clusterTagOf, isServerMadeFor, isMarkedFor, isServerOf, metadataOf } from './ownership.ts';
import { type Mark, Ports } from './ports.ts';
import { marksIn, type OpenStackSpec } from './provider-spec.ts';
import {
  addressesOf,
  hasNoVolume,
  isInErrorUnknown,
  type Server,
  serverBody,
  type ServerState,
  serverStateOf,
  survivorOf,
} from './server.ts';
import type { MachineOfCloud } from './settings.ts';
import { Users } from './users.ts';
import type { DiskOwner } from './volume.ts';

export interface CreationDeps extends MachineOfCloud {
  readonly spec: OpenStackSpec;
  readonly className: string;
  /** Of this process. */
  readonly failedBuilds: FailedBuilds;
  /** Encoded as Nova takes it. */
  readonly userData: string;
}

/** Builds that fail do so in the first seconds; a slow one is waited for by InitializeMachine, which comes after. */
const LONGEST_BUILD_WAIT_MS = 30_000;
/** How long what failed is waited for to go. */
const GONE_MS = 20_000;
const LONGEST_FAULT = 400;

/**
 * Makes the server of a machine, exactly one, whatever was begun before and wherever it broke off:
 *
 * 1. A server that is there is taken. Of several that were made for this machine one stays; builds that failed are removed.
 * 2. A port for each network, the first of which gets its floating IP. They are made once: their description says for whom.
 * 3. The first port is marked: from now on there may be a disk, which is asked for; each disk has a mark of its own. When all can be used
 *    it is marked anew, for the server. Whoever has marked it looks once more for a server that somebody else made meanwhile.
 * 4. One request for a server, while the mark is young. No answer: nothing is asked for again until none can appear any more, or it has
 *    appeared.
 * 5. It is waited for until it runs. A build that fails is removed, and its fault says why.
 *
 * What fails in between is taken back where that is certain to be right.
 */
export class Creation {
  readonly #deps: CreationDeps;
  readonly #ports: Ports;
  /** There is no server of the machine while one is made. */
  readonly #users: Users;

  constructor(deps: CreationDeps) {
    this.#deps = deps;
    this.#ports = new Ports(deps);
    this.#users = new Users({ ...deps, marks: marksIn(deps.spec.tags), own: new Set() });
  }

  /** The server, running or, when that takes longer than is waited for, still being built. */
  async run(call: DriverCall): Promise<Server> {
    const { signal } = call;
    const found = await this.#adopt(signal);
    if (found !== undefined) return await this.#settle(found.id, found, call);

    const known = await this.#usable(signal);
    const leftMs = this.#ports.leftMs(known);
    if (leftMs > 0) throw stillUnknown(leftMs);
    const { id, disks } = await this.#make(known, call);
    this.#deps.log.info({ machine: this.#name(), server: id }, 'requested a server');
    // Not before: it takes time that the mark of the port is limited to.
    await this.#removeOtherDisks(disks, signal);
    return await this.#settle(id, undefined, call);
  }

  /** A server of this machine that is there or being built, after all others of it are gone. */
  async #adopt(signal: AbortSignal): Promise<Server | undefined> {
    const { cloud, machine, spec } = this.#deps;
    const marks = marksIn(spec.tags);
    const named = await cloud.compute.serversNamed(machine.name, signal);
    const own = named.filter(
      (server) => isMarkedFor(server, marks, machine) && isServerOf(server, machine, cloud.region),
    );
    this.#requireTags(named);
    const live: Server[] = [];
    for (const server of own) {
      const state = this.#stateOf(server);
      if (state === 'failed') await this.#remove(server, 'removed a server whose build had failed', signal);
      else if (state !== 'gone') live.push(server);
    }
    const [first] = live;
    if (live.length < 2 && (first === undefined || addressesOf(first).length > 0 || !isServerMadeFor(first, machine)))
      return first;
    return await this.#oneOf(live, signal);
  }

  /** A server that was made for this machine and has lost its tags is left alone: there must not be two. */
  #requireTags(named: readonly Server[]): void {
    const { machine, spec } = this.#deps;
    const marks = marksIn(spec.tags);
    const left = named.find(
      (server) =>
        isServerMadeFor(server, machine) && !isMarkedFor(server, marks, machine) && this.#stateOf(server) !== 'gone',
    );
    if (left === undefined) return;
    const text = `server ${left.id} was created for machine ${this.#name()}, but lacks a tag of its class (${marks.join(', ')})`;
    throw new DriverError('FailedPrecondition', `${text}: restore the tag, or delete the server or the Machine`);
  }

  /** Of servers that were made for this machine the one that stays: one without address, because another one took its port, does not. */
  async #oneOf(live: readonly Server[], signal: AbortSignal): Promise<Server | undefined> {
    const { machine, cloud } = this.#deps;
    if (!live.every((server) => isServerMadeFor(server, machine))) {
      const ids = live.map(({ id }) => id).join(', ');
      throw new DriverError('OutOfRange', `several servers match machine ${this.#name()}: ${ids}`);
    }
    const ports = await this.#ports.list(signal);
    const survivor = survivorOf(live, new Set(ports.map(({ device_id: device }) => device)));
    const others = live.filter((server) => server !== survivor);
    for (const other of others) await this.#remove(other, 'removed a second server of a machine', signal);
    if (survivor === undefined || this.#stateOf(survivor) === 'building') return survivor;
    // Nova took the ports of those that went, whosever they were by then.
    const bound = await cloud.network.portsOfDevice(survivor.id, signal);
    if (bound.length > 0) return survivor;
    await this.#remove(survivor, 'removed a server that had lost its port', signal);
    return undefined;
  }

  /** Ports that a server can be made with. Those of a server that is gone would be refused. */
  async #usable(signal: AbortSignal): Promise<readonly Port[]> {
    const { cloud } = this.#deps;
    const usable: Port[] = [];
    for (const port of await this.#ports.list(signal)) {
      const { id, device_id: device } = port;
      const server = device === '' ? undefined : await cloud.compute.server(device, signal);
      if (device === '') usable.push(port);
      else if (server === undefined || this.#stateOf(server) === 'gone') await cloud.network.deletePort(id, signal);
    }
    return usable;
  }

  async #make(
    known: readonly Port[],
    { signal, timeoutMs }: DriverCall,
  ): Promise<{ readonly id: string; readonly disks: MachineDisks }> {
    const { spec, machine } = this.#deps;
    try {
      const parts = await this.#resolve(signal);
      const ports = await this.#ports.ensure(spec, known, signal);
      await this.#floatingIP(ports, signal);
      const deps = { ...this.#deps, ports: this.#ports, users: this.#users };
      const disks = await ensureDisks(deps, ports, parts.imageID, waitMsOf(timeoutMs), signal);
      const mark = await this.#ports.mark(ports, signal);
      await this.#requireNone(mark, signal);
      const portIDs = ports.map(({ id }) => id);
      const body = serverBody(spec, {
        ...parts,
        name: machine.name,
        portIDs,
        disks,
        ...(await this.#identity(signal)),
      });
      return { id: await this.#ask(body, mark, signal), disks };
    } catch (err) {
      if (isCertainlyNone(err)) await this.#takeBack('unmarked', signal);
      throw err;
    }
  }

  async #resolve(signal: AbortSignal): Promise<{
    readonly flavorID: string;
    readonly imageID: string;
    readonly serverGroupID: string | undefined;
  }> {
    const { cloud, spec } = this.#deps;
    const { flavor, image, serverGroup } = spec;
    const idOf = async (
      kind: string,
      wanted: OpenStackSpec['flavor'],
      find: (name: string, shared: AbortSignal) => Promise<string>,
    ): Promise<string> =>
      wanted.by === 'id'
        ? wanted.value
        : await cloud.names.get(`${kind} ${wanted.value}`, signal, async (shared) => await find(wanted.value, shared));
    return {
      flavorID: await idOf('flavor', flavor, (name, shared) => cloud.compute.flavorID(name, shared)),
      imageID: await idOf('image', image, (name, shared) => imageIDOf(cloud, name, shared)),
      serverGroupID:
        serverGroup &&
        (await idOf('server group', serverGroup, (name, shared) => cloud.compute.serverGroupID(name, shared))),
    };
  }

  /** Another process may have made the server, and taken its mark back, since we looked. */
  async #requireNone(mark: Mark, signal: AbortSignal): Promise<void> {
    const { cloud, machine } = this.#deps;
    const named = await cloud.compute.serversNamed(machine.name, signal);
    if (!named.some((server) => isServerMadeFor(server, machine) && this.#stateOf(server) !== 'gone')) return;
    await this.#ports.unmark(mark, signal);
    throw new DriverError('Aborted', 'another process has created the server of this machine');
  }

  /** Before there is a server: one that runs without its address would join, and nobody would give it one any more. */
  async #floatingIP([first, ...others]: readonly [Port, ...Port[]], signal: AbortSignal): Promise<void> {
    const { floatingIP } = this.#deps.spec;
    if (floatingIP === undefined) return;
    await ensureFloatingIP(this.#floatingIPDeps([first, ...others]), floatingIP, first.id, signal);
  }

  #floatingIPDeps(ports: readonly Port[]): FloatingIPDeps {
    const { cloud, machine } = this.#deps;
    return { cloud, owner: ownerText(machine), ports: new Set(ports.map(({ id }) => id)), users: this.#users };
  }

  /** Only who has marked the port has made a server with its disks. One that stays all the same goes with the machine. */
  async #removeOtherDisks({ root, data }: MachineDisks, signal: AbortSignal): Promise<void> {
    const { cloud, log } = this.#deps;
    const used = new Set(root === undefined ? data : [root, ...data]);
    if (used.size === 0) return;
    await cloud.volumes.removeOthers(this.#diskOwner(), used, signal).catch((err: unknown) => {
      signal.throwIfAborted();
      log.debug({ machine: this.#name(), err }, 'could not remove another disk of a machine');
    });
  }

  async #identity(
    signal: AbortSignal,
  ): Promise<{ metadata: Record<string, string>; tags: readonly string[]; userData: string }> {
    const { cloud, machine, className, spec, userData } = this.#deps;
    const tag = clusterTagOf(machine.cluster);
    const hasTags = tag !== undefined && (await cloud.compute.hasTags(signal));
    return { metadata: metadataOf(machine, className, spec.tags), tags: hasTags ? [tag] : [], userData };
  }

  /** The request for the server. What is thrown leaves the mark where a server may have been made. */
  async #ask(body: object, mark: Mark, signal: AbortSignal): Promise<string> {
    const { cloud, machine } = this.#deps;
    const what = 'creating the server';
    const answer = await this.#ports.send(what, mark, () => cloud.compute.create(body, signal), signal);
    const { status, body: made } = answer;
    if (status === 202) {
      await this.#ports.unmark(mark, signal); // it shows in every list from now on
      return (made as { server: { id: string } }).server.id;
    }
    // 500 is Nova's own, and the request is over; other 5xx come from what stands in front of it, and Nova may work on.
    if (status > 500) throw this.#refusal(answer, what);
    const found = status === 500 ? await cloud.compute.serversNamed(machine.name, signal) : [];
    if (!found.some((server) => isServerMadeFor(server, machine))) await this.#ports.unmark(mark, signal);
    throw this.#refusal(answer, what);
  }

  /** A refusal repeats what it was sent; user data is nobody's business. */
  #refusal(answer: Answer, what: string): DriverError {
    const { userData } = this.#deps;
    const text = JSON.stringify(answer.body);
    const body: unknown = text.includes(userData) ? JSON.parse(text.replaceAll(userData, '…')) : answer.body;
    return errorOf({ ...answer, body }, what);
  }

  /** Waits for the server; a build that fails is removed. */
  async #settle(id: string, found: Server | undefined, { signal, timeoutMs, cluster }: DriverCall): Promise<Server> {
    const { cloud } = this.#deps;
    const waitMs = waitMsOf(timeoutMs);
    // One that this very call has requested has never run, whether or not Nova shows that: there is nothing on it.
    const stateOf = (one: Server): ServerState =>
      found === undefined && isInErrorUnknown(one) ? 'failed' : this.#stateOf(one);
    const isSettled = (one: Server): boolean => stateOf(one) !== 'building';
    const server =
      found !== undefined && isSettled(found)
        ? found
        : await cloud.pollOf(cluster).until(id, isSettled, waitMs, signal);
    if (server === undefined || stateOf(server) === 'gone')
      throw new DriverError('Aborted', `server ${id} was deleted while it was built`);
    if (stateOf(server) !== 'failed') return server;
    // Should it not be removed now, the next call sees what this one has seen.
    if (found === undefined) this.#deps.failedBuilds.note(server);

    // One that was given up for lost may have come to life since.
    const latest = (await cloud.compute.server(id, signal)) ?? server;
    if (stateOf(latest) === 'there') return latest;
    const error = await buildFailure(cloud, this.#deps.spec, latest, signal);
    await this.#remove(server, 'removed a server whose build had failed', signal);
    await this.#takeBack('all', signal);
    throw error;
  }

  /** Deletes a server, and waits until it is gone. Without Cinder Nova would leave its disks attached for ever. */
  async #remove(server: Server, message: string, signal: AbortSignal): Promise<void> {
    const { cloud, machine, log } = this.#deps;
    const { id } = server;
    if (this.#hasDisk() && !hasNoVolume(server)) await cloud.volumes.list(this.#diskOwner(), () => false, signal);
    await cloud.compute.delete(id, signal);
    const isGone = (one: Server): boolean => this.#stateOf(one) === 'gone';
    const left = await cloud.pollOf(machine.cluster).until(id, isGone, GONE_MS, signal);
    if (left !== undefined && !isGone(left)) throw new DriverError('Aborted', `server ${id} is still being deleted`);
    log.warn({ machine: this.#name(), server: id }, message);
  }

  /** Removes ports and disk again, which count against quotas; what stays is found by the next call. */
  async #takeBack(which: 'all' | 'unmarked', signal: AbortSignal): Promise<void> {
    const { cloud, spec, log } = this.#deps;
    try {
      const ports = await this.#ports.list(signal);
      const free = ports.filter(
        (port) => port.device_id === '' && (which === 'all' || this.#ports.leftMs([port]) === 0),
      );
      // Those of ports that are not free are somebody's who makes the server.
      if (spec.floatingIP !== undefined && free.length === ports.length)
        await releaseFloatingIPs(this.#floatingIPDeps(free), signal);
      for (const { id } of free) await cloud.network.deletePort(id, signal);
      if (this.#hasDisk()) await cloud.volumes.remove(this.#diskOwner(), () => false, this.#users, 0, signal);
    } catch (err) {
      log.debug({ machine: this.#name(), err }, 'could not undo a creation');
    }
  }

  #stateOf(server: Server): ServerState {
    const { clock, settings, failedBuilds } = this.#deps;
    return failedBuilds.has(server) ? 'failed' : serverStateOf(server, clock.now(), settings.buildMs);
  }

  #hasDisk(): boolean {
    const { rootDiskSize, dataVolumes } = this.#deps.spec;
    return rootDiskSize !== undefined || dataVolumes.length > 0;
  }

  #diskOwner(): DiskOwner {
    const { machine } = this.#deps;
    return { name: machine.name, owner: ownerText(machine) };
  }

  #name(): string {
    return `${this.#deps.machine.namespace}/${this.#deps.machine.name}`;
  }
}

/** Why a build failed. An outage of what the scheduler asks looks to Nova as if there was no room. */
export async function buildFailure(
  cloud: Cloud,
  { rootDiskSize, dataVolumes }: Pick<OpenStackSpec, 'rootDiskSize' | 'dataVolumes'>,
  listed: Server,
  signal: AbortSignal,
): Promise<DriverError> {
  // Lists tell no faults.
  const server = (await cloud.compute.server(listed.id, signal)) ?? listed;
  const words = server.fault?.message ?? '';
  const shown = shortText(words === '' ? `in status ${server.status} since ${server.created}` : words, LONGEST_FAULT);
  const code = codeOfFault(words);
  if (code === 'ResourceExhausted' && !(await cloud.session.doesSchedulingAnswer(cloud.region, signal)))
    return new DriverError(
      'Unavailable',
      `building server ${server.id}: ${shown} (Keystone or Placement does not answer)`,
    );
  const member = rootDiskSize === undefined && dataVolumes.length > 0 ? 'dataVolumes' : 'rootDiskSize';
  const at = /\bvolume/i.test(words) ? `providerSpec.spec.${member}: ` : '';
  return new DriverError(code, `${at}building server ${server.id}: ${shown}`);
}

function waitMsOf(timeoutMs: number): number {
  return Math.min(LONGEST_BUILD_WAIT_MS, timeoutMs / 2);
}

function stillUnknown(leftMs: number): DriverError {
  const seconds = Math.ceil(leftMs / 1_000);
  return new DriverError(
    'Unavailable',
    `a request for the server or one of its disks was not answered: one may still appear in the next ${seconds} s`,
  );
}

/** Whether it is certain, after this failure, that no server was made by us or is being made by somebody else. */
function isCertainlyNone(err: unknown): boolean {
  return err instanceof DriverError && !['Unavailable', 'Aborted', 'Uninitialized'].includes(err.code);
}
