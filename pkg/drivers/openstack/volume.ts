import type { Clock } from '../../base/clock/clock.ts';
import { DriverError } from '../../driver/error.ts';
import { type Answer, codeOfFault, errorOf, errorTextOf } from './answer.ts';
import { allOf } from './pages.ts';
import { ServiceClient, orUnavailable } from './service-client.ts';
import type { Session } from './session.ts';
import type { Users } from './users.ts';

/** A volume of Cinder, as much of it as is looked at. */
export interface Volume {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly description: string | null;
  readonly size: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly volume_image_metadata?: { readonly image_id?: string };
  readonly attachments?: readonly { readonly server_id?: string | null }[];
}

export interface DiskOwner {
  /** Of the machine, and of each of its volumes. */
  readonly name: string;
  /** See ownerText. */
  readonly owner: string;
}

export interface DesiredVolume extends DiskOwner {
  /** Which of the machine's disks it is; see diskText. */
  readonly description: string;
  readonly size: number;
  /** Undefined: Cinder's default. */
  readonly type: string | undefined;
  /** Undefined: where Cinder likes. */
  readonly availabilityZone: string | undefined;
  /** Undefined: it is empty. */
  readonly imageID: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /** What the class says of it, below `providerSpec.spec`. */
  readonly members: { readonly size: string; readonly type: string };
}

/**
 * How a volume stands:
 *
 * | Cinder says                                         | state  |
 * |-----------------------------------------------------|--------|
 * | available                                           | usable |
 * | deleting                                            | going  |
 * | error_deleting: Cinder deletes it for nobody        | stuck  |
 * | error and the other errors                          | failed |
 * | anything else: it is being made, attached, detached | busy   |
 */
export type VolumeState = 'usable' | 'going' | 'stuck' | 'failed' | 'busy';

/** What a volume is attached to, or reserved for. */
interface Attachment {
  readonly id: string;
  readonly instance: string | null;
  /** How its host reaches the volume; empty while it is only reserved. */
  readonly connection_info?: object | null;
}

const POLL_MS = 1_000;
/** A volume that is in use for longer, without its server, is asked for whom. */
const PUZZLING_MS = 3_000;
const MESSAGES = { 'OpenStack-API-Version': 'volume 3.5' };
const ATTACHMENTS = { 'OpenStack-API-Version': 'volume 3.27' };
/** In which a volume has attachments. */
const ATTACHED = new Set(['in-use', 'reserved', 'attaching', 'detaching']);

/** Cinder, in one region: disks of machines. Those that Nova makes by itself carry no name, and are lost when it is killed meanwhile. */
export class Volumes {
  readonly #client: ServiceClient;
  readonly #clock: Clock;
  /** Members of one page. */
  readonly #pageSize: number;

  constructor(session: Session, region: string, clock: Clock, pageSize: number) {
    this.#client = new ServiceClient(session, 'volumev3', region);
    this.#clock = clock;
    this.#pageSize = pageSize;
  }

  /** Whether the cloud has Cinder in this region. */
  async isOffered(signal: AbortSignal): Promise<boolean> {
    return await this.#client.isOffered(signal);
  }

  /** The zones that it has; none where it does not say. */
  async zones(signal: AbortSignal): Promise<readonly string[]> {
    const path = '/os-availability-zone';
    const found = await this.#client.call<{ availabilityZoneInfo: readonly { zoneName: string }[] }>(
      'listing zones of volumes',
      'GET',
      path,
      signal,
      { allowed: [403, 404] },
    );
    return (found?.availabilityZoneInfo ?? []).map(({ zoneName }) => zoneName);
  }

  /** The disks of a machine that are there or being made, and that no other server uses. */
  async free(of: DiskOwner, users: Users, signal: AbortSignal): Promise<readonly Volume[]> {
    const free: Volume[] = [];
    for (const volume of await this.list(of, () => false, signal))
      if (volumeStateOf(volume.status) !== 'going' && !(await this.#isOthers(volume, users, signal))) free.push(volume);
    return free;
  }

  /** The ID of a disk once it can be used. Throws Uninitialized when that takes longer. */
  async untilUsable(asked: Volume, wanted: DesiredVolume, waitMs: number, signal: AbortSignal): Promise<string> {
    const endMs = this.#clock.monotonicMs() + waitMs;
    for (let volume = asked; ;) {
      const { id, status } = volume;
      const state = volumeStateOf(status);
      if (state === 'usable' && isAsWanted(volume, wanted)) return id;
      if (state === 'usable') {
        await this.#delete(volume, signal);
        throw new DriverError('Aborted', `volume ${id} was created for another size or image and is re-created`);
      }
      if (state === 'stuck') throw stuck(volume);
      if (state === 'failed') {
        const error = await this.#failure(volume, wanted, signal);
        await this.#delete(volume, signal);
        throw error;
      }
      if (this.#clock.monotonicMs() >= endMs)
        throw new DriverError(
          'Uninitialized',
          `${diskLabel(wanted)} is not ready: volume ${id} is in status ${status}`,
        );
      await this.#clock.sleep(POLL_MS, signal);
      const found = await this.#read(id, signal);
      if (found === undefined)
        throw new DriverError('Aborted', `volume ${id} was deleted while ${diskLabel(wanted)} was being created`);
      volume = found;
    }
  }

  /** The disks of a machine, and of the others of its name those that `isOurs`: which an earlier provider made. */
  async list(
    { name, owner }: DiskOwner,
    isOurs: (volume: Volume) => boolean,
    signal: AbortSignal,
  ): Promise<readonly Volume[]> {
    const path = `/volumes/detail?name=${encodeURIComponent(name)}`;
    const list = { what: 'listing disks', path, member: 'volumes', pageSize: this.#pageSize };
    const volumes = await allOf<Volume>(this.#client, list, signal);
    return volumes.filter((volume) => volume.name === name && (isDiskOf(volume, owner) || isOurs(volume)));
  }

  /** Deletes disks of a machine beside those that are used, which another process made at the same time, or a late request. */
  async removeOthers(of: DiskOwner, used: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const volumes = await this.list(of, () => false, signal);
    const others = volumes.filter(
      ({ id, status }) => !used.has(id) && volumeStateOf(status) !== 'going' && !ATTACHED.has(status),
    );
    for (const other of others) await this.#delete(other, signal);
  }

  /**
   * Deletes the disks of a machine, as list shows them, and waits until they are gone; those that another server
   * uses are left alone. Says whether there were any. Throws Aborted when that takes longer, FailedPrecondition with Cinder's words for one
   * that it refuses to delete, and Internal for one that it has failed to delete. Of several that an earlier provider may have made it deletes
   * none (FailedPrecondition): a restored backup has the name and metadata of its volume, and may be the only copy by the next call.
   */
  async remove(
    of: DiskOwner,
    isOurs: (volume: Volume) => boolean,
    users: Users,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const startedMs = this.#clock.monotonicMs();
    const left = new Set<string>();
    /** What Cinder keeps is asked for once, and does not keep the others. */
    const refused = new Map<string, DriverError>();
    for (let hadAny = false; ; hadAny = true) {
      const waitedMs = this.#clock.monotonicMs() - startedMs;
      const all = await this.list(of, isOurs, signal);
      const earlier = all.filter((volume) => !isDiskOf(volume, of.owner));
      if (earlier.length > 1) throw ambiguous(earlier);
      const volumes = all.filter(({ id }) => !left.has(id));
      if (waitedMs >= Math.min(PUZZLING_MS, waitMs))
        for (const volume of volumes) if (await this.#isOthers(volume, users, signal)) left.add(volume.id);
      const own = volumes.filter(({ id }) => !left.has(id));
      const [first] = own;
      if (first === undefined) return hadAny && left.size === 0;
      const states = own.map(({ status }) => volumeStateOf(status));
      for (const [i, volume] of own.entries()) {
        const isFree = (states[i] === 'usable' || states[i] === 'failed') && !refused.has(volume.id);
        const isCertain =
          isFree && (isDiskOf(volume, of.owner) || (await this.#isStill(volume, isOurs, users, signal)));
        const answer = isCertain ? await this.#delete(volume, signal) : undefined;
        if (answer !== undefined && answer.status < 300) users.deleted(volume.id);
        if (answer?.status === 400 && (await this.#isFree(volume, signal)))
          refused.set(volume.id, refusedDeletion(volume, answer));
      }
      const isKept = ({ id }: Volume, i: number): boolean => refused.has(id) || states[i] === 'stuck';
      const why = own.map(({ id }) => refused.get(id)).find((error) => error !== undefined);
      if (own.every(isKept)) throw why ?? stuck(first);
      if (waitedMs >= waitMs) throw why ?? stillThere(own.find((one, i) => !isKept(one, i)) ?? first);
      await this.#clock.sleep(POLL_MS, signal);
    }
  }

  /** The answer, whatever it says. */
  async create(
    { name, size, type, availabilityZone, imageID, description, metadata }: DesiredVolume,
    signal: AbortSignal,
  ): Promise<Answer> {
    const volume = {
      name,
      size,
      volume_type: type,
      availability_zone: availabilityZone,
      imageRef: imageID,
      description,
      metadata,
    };
    return await this.#client.raw('POST', '/volumes', signal, { body: { volume } });
  }

  /** Why a volume could not be made: Cinder tells its reasons to those who ask for them. */
  async #failure({ id, status }: Volume, { members }: DesiredVolume, signal: AbortSignal): Promise<DriverError> {
    const path = `/messages?resource_uuid=${id}`;
    const answer = await this.#client
      .get<{ messages: readonly { user_message?: string }[] }>('reading messages', path, signal, MESSAGES)
      .catch(() => undefined);
    const words = answer?.messages.map(({ user_message: message = '' }) => message).find(Boolean) ?? '';
    const shown = words === '' ? '' : ` (${words})`;
    const remedy = 'request another size or type, or contact the operator of the cloud';
    return new DriverError(
      codeOfFault(words),
      `providerSpec.spec.${members.size}, ${members.type}: volume ${id} could not be created, its status is ${status}${shown}; ${remedy}`,
    );
  }

  /**
   * Whether another server uses a disk. What is merely reserved, for a server that does not exist any more, is freed: Nova leaves it so when a
   * server is deleted at the wrong moment of its build, and nobody else looks after it.
   */
  async #isOthers({ id, status }: Volume, users: Users, signal: AbortSignal): Promise<boolean> {
    if (!ATTACHED.has(status)) return false;
    const attachments = await this.#attachmentsOf(id, signal);
    for (const { instance } of attachments) {
      if (instance === null || !(await users.isOther(instance, signal))) continue;
      users.leave('volume', id, instance);
      return true;
    }
    for (const { id: attachment, instance, connection_info: connection } of attachments) {
      if (instance === null || Object.keys(connection ?? {}).length > 0) continue;
      const path = `/attachments/${attachment}`;
      const more = { headers: ATTACHMENTS, allowed: [404] };
      await this.#client.call('freeing the volume', 'DELETE', path, signal, more);
    }
    return false;
  }

  /** None where Cinder is too old to tell. */
  async #attachmentsOf(volume: string, signal: AbortSignal): Promise<readonly Attachment[]> {
    type Listed = { readonly attachments: readonly (Attachment & { readonly volume_id: string })[] };
    const path = `/attachments/detail?volume_id=${encodeURIComponent(volume)}`;
    const what = 'listing attachments of the volume';
    const more = { headers: ATTACHMENTS, allowed: [404, 406] };
    const found = await this.#client.call<Listed>(what, 'GET', path, signal, more);
    return (found?.attachments ?? []).filter(({ volume_id: of }) => of === volume);
  }

  /**
   * Whether a disk that an earlier provider made is still what it was listed as, and attached to no server that exists, right before it is
   * deleted. One whose state was reset keeps its attachment, of which Cinder says that it refuses.
   */
  async #isStill(
    { id, name }: Volume,
    isOurs: (volume: Volume) => boolean,
    users: Users,
    signal: AbortSignal,
  ): Promise<boolean> {
    const latest = await this.#read(id, signal);
    if (latest?.name !== name || !isOurs(latest)) return false;
    for (const { server_id: server } of latest.attachments ?? [])
      if (typeof server !== 'string' || (await users.isOther(server, signal))) return false; // or a host uses it
    return true;
  }

  /** Whether a disk is free that Cinder refuses to delete: it may be on its way, or attached, since it was listed. */
  async #isFree({ id }: Volume, signal: AbortSignal): Promise<boolean> {
    const latest = await this.#read(id, signal);
    const state = latest === undefined ? 'going' : volumeStateOf(latest.status);
    return state === 'usable' || state === 'failed';
  }

  /** The answer: a success, 400 when Cinder does not delete it as it stands, or 404. */
  async #delete(volume: Volume, signal: AbortSignal): Promise<Answer> {
    const what = `deleting ${diskLabel(volume)}`;
    const answer = await this.#client.raw('DELETE', `/volumes/${volume.id}`, signal).catch(orUnavailable(what));
    if (answer.status < 300 || answer.status === 400 || answer.status === 404) return answer;
    throw errorOf(answer, what);
  }

  async #read(id: string, signal: AbortSignal): Promise<Volume | undefined> {
    const path = `/volumes/${id}`;
    const more = { allowed: [404] };
    return (await this.#client.call<{ volume: Volume }>('reading the volume', 'GET', path, signal, more))?.volume;
  }
}

function ambiguous(volumes: readonly Volume[]): DriverError {
  const ids = volumes.map(({ id }) => id).toSorted();
  return new DriverError(
    'FailedPrecondition',
    `the root disk is not deleted yet: it is one of volumes ${ids.join(', ')}; delete the others, or give them another name`,
  );
}

/** See the table. */
export function volumeStateOf(status: string): VolumeState {
  if (status === 'available') return 'usable';
  if (status === 'deleting') return 'going';
  if (status === 'error_deleting') return 'stuck';
  return status.startsWith('error') ? 'failed' : 'busy';
}

/** The class may have changed since it was made. */
function isAsWanted({ size, volume_image_metadata: image }: Volume, wanted: DesiredVolume): boolean {
  return size === wanted.size && (image?.image_id ?? wanted.imageID) === wanted.imageID;
}

const DATA = ' disk=';

/** The description of a disk: whose it is, and which; the root disk without a name. */
export function diskText(owner: string, dataVolume?: string): string {
  return dataVolume === undefined ? owner : `${owner}${DATA}${dataVolume}`;
}

function isDiskOf({ description }: Pick<Volume, 'description'>, owner: string): boolean {
  return description === owner || (description ?? '').startsWith(owner + DATA);
}

/** What a message calls a disk. */
export function diskLabel({ description }: Pick<Volume, 'description'>): string {
  const [, name] = (description ?? '').split(DATA);
  return name === undefined ? 'the root disk' : `data volume ${name}`;
}

/** What Cinder's refusals are about, and what can be done; the first that matches. */
const REFUSALS = [
  { status: 413, words: /./, member: 'size', remedy: 'free quota of volumes, or request a higher one' },
  { status: 404, words: /volume type/i, member: 'type', remedy: 'name a volume type that the cloud has' },
  { status: 400, words: /availability zone/i, member: 'availabilityZone', remedy: 'name a zone that Cinder also has' },
  { status: 400, words: /size/i, member: 'size', remedy: 'the disk must hold the image' },
  {
    status: 400,
    words: /image/i,
    member: 'imageID, imageName',
    remedy: 'name an image from which a volume can be created',
  },
] as const;

/** Why Cinder makes no volume, with the member of the class. */
export function volumeErrorOf(answer: Answer, wanted: Pick<DesiredVolume, 'description' | 'members'>): DriverError {
  const error = errorOf(answer, `creating ${diskLabel(wanted)}`);
  const { words } = errorTextOf(answer.body);
  const found = REFUSALS.find((refusal) => refusal.status === answer.status && refusal.words.test(words));
  if (found === undefined) return error;
  const { code, detail } = error;
  const { member } = found;
  const at = member === 'size' || member === 'type' ? wanted.members[member] : member;
  return new DriverError(code, `providerSpec.spec.${at}: ${detail}; ${found.remedy}`, { cause: error });
}

function stillThere(volume: Volume): DriverError {
  const { id, status } = volume;
  return new DriverError('Aborted', `${diskLabel(volume)} is not deleted yet: volume ${id} is in status ${status}`);
}

function stuck(volume: Volume): DriverError {
  const remedy = 'the operator of the cloud must delete it or reset its state';
  return new DriverError(
    'Internal',
    `${diskLabel(volume)} is not deleted yet: Cinder failed to delete volume ${volume.id}; ${remedy}`,
  );
}

function refusedDeletion(volume: Volume, answer: Answer): DriverError {
  const what = `${diskLabel(volume)} is not deleted yet: Cinder refuses to delete volume ${volume.id}`;
  const error = errorOf(answer, what);
  return new DriverError('FailedPrecondition', error.detail, { cause: error });
}
