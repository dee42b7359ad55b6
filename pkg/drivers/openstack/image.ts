import { DriverError } from '../../driver/error.ts';
import { ServiceClient } from './service-client.ts';
import type { Session } from './session.ts';

/** Glance, in one region. */
export class Images {
  readonly #client: ServiceClient;

  constructor(session: Session, region: string) {
    this.#client = new ServiceClient(session, 'image', region);
  }

  /** The image of a name. Throws Internal unless there is exactly one, as Gardener's provider does. */
  async imageID(name: string, signal: AbortSignal): Promise<string> {
    const path = `/images?name=${encodeURIComponent(name)}`;
    const { images } = await this.#client.get<{ images: readonly { id: string; name: string }[] }>(
      'listing images',
      path,
      signal,
    );
    const [first, second] = images.filter((image) => image.name === name);
    const at = 'providerSpec.spec.imageName';
    if (first === undefined) throw new DriverError('Internal', `${at}: there is no image ${name}`);
    if (second !== undefined)
      throw new DriverError(
        'Internal',
        `${at}: several images have the name ${name}, use imageID or remove the others`,
      );
    return first.id;
  }
}
