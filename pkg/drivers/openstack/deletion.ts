import type { DriverCall } from '../../driver/driver.ts';
import { DriverError } from '../../driver/error.ts';
import { type MachineIdentity, notFound } from '../machine-identity.ts';
import { releaseFloatingIPs } from './floating-ip.ts';
import { ownerText } from './intent.ts';
import type { Port } from './network.ts';
import { isServerOf, serverOwnerOf } from './ownership.ts';
import { Ports } from './ports.ts';
import { MARKS } from './provider-spec.ts';
import { hasNoVolume, type Server, serverStateOf } from './server.ts';
import type { MachineOfCloud } from './settings.ts';
import { Users } from './users.ts';
import type { DiskOwner, Volume } from './volume.ts';

export interface DeletionDeps extends MachineOfCloud {
  readonly servers: readonly Server[];
  /** The two tags of an earlier provider's ports. */
  readonly marks: readonly string[];
  /** Whether the class has disks of their own. It may have lost them since a disk was made. */
  readonly hasDisk: boolean;
  /** Whether it has floating IPs that are allocated. */
  readonly hasFloatingIP: boolean;
  /** How long something may still appear that another process has asked for. */
  readonly othersMs: number;
}

/** A server that Nova keeps for a while after its deletion, where it is set up so. */
const KEPT = 'SOFT_DELETED';
/** What is left of the call's time when the deletion is called unfinished. */
const MARGIN_MS = 3_000;

/**
 * Deletes the servers of a machine and what was made for them: ports, disks, floating IPs. May be repeated until nothing
 * is left. Throws NotFound when there was nothing, Aborted when it is not finished.
 */
export async function deleteServers(deps: DeletionDeps, call: DriverCall): Promise<void> {
  const { machine, servers } = deps;
  // Without a Machine nobody asks again once the server is gone: what belongs to it goes first.
  const isStub = machine.uid === undefined && machine.providerID !== undefined;
  if (isStub) return await deleteOrphans(deps, call);

  const subject = subjectOf(deps, machine);
  const ports = new Ports(subject);
  // Such a deletion needs Cinder anyway, and Nova would leave disks attached for ever to a server that is gone.
  const isWithoutDisk = servers.length > 0 && servers.every(hasNoVolume);
  if (deps.hasDisk && !isWithoutDisk) await listDisks(subject, () => false, call.signal);
  const isServers = new Set(servers.map(({ id }) => id));
  const isOurs = (port: Port): boolean => isOfEarlierProvider(port, deps.marks, isServers);
  const known = await subject.users.freeOf(await ports.list(call.signal, isOurs), call.signal);
  const leftMs = servers.length > 0 ? 0 : ports.leftMs(known);
  if (leftMs > 0) {
    const seconds = Math.ceil(leftMs / 1_000);
    throw new DriverError(
      'Aborted',
      `a request for the server or one of its disks was not answered: one may appear in the next ${seconds} s`,
    );
  }
  const endMs = deps.clock.monotonicMs() + call.timeoutMs - MARGIN_MS;
  await removeServers(deps, call);
  const hadFloatingIP = await removePorts(subject, known, call.signal);
  const hadDisks = await removeDisks(subject, (disk) => isDiskOfEarlierProvider(disk, deps.marks), endMs, call.signal);
  requireAnswered(deps, hadFloatingIP);
  if (servers.length === 0 && known.length === 0 && !hadFloatingIP && !hadDisks) throw notFound(machine);
}

/**
 * Throws Aborted while a port or floating IP of the machine may still appear: the next call looks for it. A process that is gone has asked
 * for no port any more once there was a server, and for no floating IP any more once there was one.
 */
function requireAnswered(
  { cloud, machine, servers, hasFloatingIP, othersMs, settings }: DeletionDeps,
  hadFloatingIP: boolean,
): void {
  const wasMade = servers.length > 0 || machine.providerID !== undefined;
  const isWhole = wasMade && (hadFloatingIP || !hasFloatingIP);
  const ownMs = cloud.network.unanswered.leftMs(ownerText(machine), settings.answerMs);
  const leftMs = Math.max(ownMs, isWhole ? 0 : othersMs);
  if (leftMs === 0) return;
  const seconds = Math.ceil(leftMs / 1_000);
  const text = `a request for a port or floating IP was not answered: one may appear in the next ${seconds} s`;
  throw new DriverError('Aborted', text);
}

async function deleteOrphans(deps: DeletionDeps, call: DriverCall): Promise<void> {
  const { machine, servers, cloud, marks, log } = deps;
  if (servers.length === 0) throw notFound(machine);
  const endMs = deps.clock.monotonicMs() + call.timeoutMs - MARGIN_MS;
  const disks = new Map<MachineIdentity, ReadonlySet<string>>();
  for (const server of servers) {
    const owner = serverOwnerOf(server, cloud.region) ?? machine;
    const subject = subjectOf(deps, owner);
    const isAttached = ({ attachments = [] }: Volume): boolean =>
      attachments.some((one) => one.server_id === server.id);
    const isOurs = (disk: Volume): boolean => isDiskOfEarlierProvider(disk, marks) && isAttached(disk);
    // Nova deletes the server also while Cinder is down, and leaves its disks for ever: it waits for Cinder, unless it has none.
    const hasDisk = deps.hasDisk && !hasNoVolume(server);
    const attached = await listDisks({ ...subject, hasDisk }, isOurs, call.signal);
    disks.set(owner, new Set(attached.filter(isOurs).map(({ id }) => id)));
    // What is not gone when this call ends, nobody will find again.
    const volumes = attached.map(({ id }) => id);
    const fields = { machine: `${owner.namespace}/${owner.name}`, server: server.id, volumes };
    if (volumes.length > 0) log.warn(fields, 'deleting a server without a Machine, and then its volumes');
    const bound = await cloud.network.portsOfDevice(server.id, call.signal);
    const ports = new Ports(subject);
    const own = await ports.list(call.signal);
    const isOwn = ({ id }: Port): boolean => own.some((one) => one.id === id);
    const mine = bound.filter((port) => isOwn(port) || isOfEarlierProvider(port, marks, new Set([server.id])));
    // Nova binds ports during the build, and unbinds them when that fails. Without a UID they may be another machine's.
    const unbound =
      owner.uid === undefined || ports.leftMs(own) > 0 ? [] : own.filter(({ device_id: of }) => of === '');
    const left = unbound.length > 0 && (await hasTwin(subject, server, call.signal)) ? [] : unbound;
    await removePorts(subject, [...mine, ...left], call.signal);
  }
  await removeServers(deps, call).catch((err: unknown) => {
    throw withVolumes(
      err,
      [...disks.values()].flatMap((known) => [...known]),
    );
  });
  // Nova deletes the disk with the server; this waits for it, and deletes one that an earlier provider made.
  for (const [owner, known] of disks) {
    const isOurs = (disk: Volume): boolean => isDiskOfEarlierProvider(disk, marks) && known.has(disk.id);
    await removeDisks(subjectOf(deps, owner), isOurs, endMs, call.signal);
  }
}

/** What becomes an Event while a server is still being deleted: when it is gone by the next look, nobody finds its volumes. */
function withVolumes(err: unknown, volumes: readonly string[]): unknown {
  if (!DriverError.hasCode(err, 'Aborted') || volumes.length === 0) return err;
  return new DriverError(err.code, `${err.detail}; its volumes may stay: ${volumes.join(', ')}`, { cause: err });
}

/**
 * Whether a machine has another server, which may be about to use a port: one that is being deleted is not. Of several that are deleted the last
 * one has none, as the driver takes calls for one name one after the other.
 */
async function hasTwin({ cloud, machine }: Subject, { id }: Server, signal: AbortSignal): Promise<boolean> {
  const named = await cloud.compute.serversNamed(machine.name, signal);
  return named.some(
    (one) => one.id !== id && one['OS-EXT-STS:task_state'] !== 'deleting' && isServerOf(one, machine, cloud.region),
  );
}

/** One machine of which something is deleted; of a server without a Machine, the one that it says to belong to. */
interface Subject extends DeletionDeps {
  readonly users: Users;
}

function subjectOf(deps: DeletionDeps, machine: MachineIdentity): Subject {
  const users = new Users({ ...deps, machine, own: new Set(deps.servers.map(({ id }) => id)) });
  return { ...deps, machine, users };
}

/** A port that carries the class's tags and is bound to nothing else. */
function isOfEarlierProvider(
  { device_id: device, tags = [] }: Port,
  marks: readonly string[],
  servers: ReadonlySet<string>,
): boolean {
  const isMarked = marks.length > 0 && marks.every((mark) => tags.includes(mark));
  return isMarked && (device === '' || servers.has(device));
}

/** One that Nova does not delete, because it is locked, keeps no other. */
async function removeServers(
  { cloud, servers, machine, settings, clock, log }: DeletionDeps,
  call: DriverCall,
): Promise<void> {
  const asked = await Promise.allSettled(servers.map(async ({ id }) => await cloud.compute.delete(id, call.signal)));
  const refused = asked.find((one) => one.status === 'rejected');
  if (refused !== undefined) throw refused.reason;
  const endMs = clock.monotonicMs() + Math.max(0, call.timeoutMs - MARGIN_MS);
  const isGone = (one: Server): boolean => serverStateOf(one, clock.now(), settings.buildMs) === 'gone';
  const wait = async (id: string, isEnough: (one: Server) => boolean): Promise<Server | undefined> =>
    await cloud.pollOf(call.cluster).until(id, isEnough, Math.max(0, endMs - clock.monotonicMs()), call.signal);
  await Promise.all(
    servers.map(async ({ id }) => {
      let left = await wait(id, isGone);
      // With a server that it keeps Nova keeps the disk as well.
      if (left?.status === KEPT && (await cloud.compute.deleteForGood(id, call.signal)))
        left = await wait(id, ({ status }) => status === 'DELETED');
      if (left !== undefined && !isGone(left)) throw new DriverError('Aborted', `server ${id} is still being deleted`);
      log.info({ machine: `${machine.namespace}/${machine.name}`, server: id }, 'deleted a server');
    }),
  );
}

/** Floating IPs, then ports. Says whether there was a floating IP. */
async function removePorts(subject: Subject, ports: readonly Port[], signal: AbortSignal): Promise<boolean> {
  const { cloud, machine, users } = subject;
  const known = new Set(ports.map(({ id }) => id));
  const hadFloatingIP = await releaseFloatingIPs({ cloud, owner: ownerText(machine), ports: known, users }, signal);
  for (const { id } of ports) await cloud.network.deletePort(id, signal);
  return hadFloatingIP;
}

/**
 * A root disk that an earlier provider made: it is named like its machine, says no more, and carries the tags of the class. It stays when its
 * server goes, and is deleted once nothing uses it.
 */
function isDiskOfEarlierProvider({ description, metadata = {} }: Volume, marks: readonly string[]): boolean {
  const saysNoMore = (description ?? '') === '';
  return saysNoMore && marks.length === MARKS.length && marks.every((mark) => metadata[mark] !== undefined);
}

/**
 * The disks of a machine, whatever its class says by now. Where the class has none, what a Cinder does not tell holds no deletion: a cloud
 * without working volumes gets rid of its servers all the same.
 */
async function listDisks(
  { cloud, machine, hasDisk, log }: Subject,
  isOurs: (volume: Volume) => boolean,
  signal: AbortSignal,
): Promise<readonly Volume[]> {
  if (!hasDisk && !(await cloud.volumes.isOffered(signal))) return [];
  try {
    return await cloud.volumes.list(diskOwnerOf(machine), isOurs, signal);
  } catch (err) {
    signal.throwIfAborted(); // a call that has ended has not looked
    if (hasDisk || !(err instanceof DriverError)) throw err;
    const fields = { machine: `${machine.namespace}/${machine.name}`, err };
    log.warn(fields, 'could not check for disks of a machine whose class has none');
    return [];
  }
}

function diskOwnerOf(machine: MachineIdentity): DiskOwner {
  return { name: machine.name, owner: ownerText(machine) };
}

/** Says whether there were any. */
async function removeDisks(
  subject: Subject,
  isOurs: (volume: Volume) => boolean,
  endMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { cloud, machine, users, clock } = subject;
  if ((await listDisks(subject, isOurs, signal)).length === 0) return false;
  const waitMs = Math.max(0, endMs - clock.monotonicMs());
  return await cloud.volumes.remove(diskOwnerOf(machine), isOurs, users, waitMs, signal);
}
