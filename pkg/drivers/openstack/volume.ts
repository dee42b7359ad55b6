import { DriverError } from '../../driver/error.ts';
import type { Clock } from '../../clock/clock.ts';
import { ServiceClient } from './service-client.ts';
import type { Session } from './session.ts';

interface Volume {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly description: string | null;
}

/** What a root disk is made with. */
export interface WantedVolume {
  readonly name: string;
  readonly size: number;
  readonly type: string;
  readonly availabilityZone: string;
  readonly imageID: string;
  /** For whom it is. */
  readonly description: string;
}

const POLL_MS = 2_000;

/** Cinder, in one region: root disks of a type, which Nova does not make by itself. */
export class Volumes {
  readonly #client: ServiceClient;
  readonly #clock: Clock;

  constructor(session: Session, region: string, clock: Clock) {
    this.#client = new ServiceClient(session, 'volumev3', region);
    this.#clock = clock;
  }

  /** The disk of that name and description, made if there is none, once it can be used. */
  async ensure(wanted: WantedVolume, signal: AbortSignal): Promise<string> {
    const [found] = await this.#own(wanted, signal);
    let volume = found ?? (await this.#create(wanted, signal));
    while (volume.status !== 'available' && volume.status !== 'in-use') {
      if (volume.status.startsWith('error')) {
        await this.#delete(volume.id, signal);
        throw new DriverError('Internal', `making the root disk: volume ${volume.id} is in status ${volume.status}`);
      }
      await this.#clock.sleep(POLL_MS, signal);
      const path = `/volumes/${volume.id}`;
      volume = (await this.#client.get<{ volume: Volume }>('reading the root disk', path, signal)).volume;
    }
    return volume.id;
  }

  /** Deletes the disks of that name and description; says whether there were any. */
  async remove(of: Pick<WantedVolume, 'name' | 'description'>, signal: AbortSignal): Promise<boolean> {
    const volumes = await this.#own(of, signal);
    for (const { id } of volumes) await this.#delete(id, signal);
    return volumes.length > 0;
  }

  async #own(
    { name, description }: Pick<WantedVolume, 'name' | 'description'>,
    signal: AbortSignal,
  ): Promise<readonly Volume[]> {
    const path = `/volumes/detail?name=${encodeURIComponent(name)}`;
    const { volumes } = await this.#client.get<{ volumes: readonly Volume[] }>('listing root disks', path, signal);
    return volumes.filter((volume) => volume.name === name && volume.description === description);
  }

  async #create(
    { name, size, type, availabilityZone, imageID, description }: WantedVolume,
    signal: AbortSignal,
  ): Promise<Volume> {
    const volume = {
      name,
      size,
      volume_type: type,
      availability_zone: availabilityZone,
      imageRef: imageID,
      description,
    };
    const made = await this.#client.call<{ volume: Volume }>('making the root disk', 'POST', '/volumes', signal, {
      body: { volume },
    });
    return (made as { volume: Volume }).volume;
  }

  async #delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.call('deleting the root disk', 'DELETE', `/volumes/${id}`, signal, { allowed: [404] });
  }
}
