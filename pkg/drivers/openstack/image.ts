import { DriverError } from '../../driver/error.ts';
import type { Cloud } from './cloud.ts';
import { ServiceClient } from './service-client.ts';

/** The ID of the image of a name, as Glance knows it. Throws Internal unless there is exactly one, as Gardener's provider does. */
export async function imageIDOf(
  { session, region }: Pick<Cloud, 'session' | 'region'>,
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const path = `/images?name=${encodeURIComponent(name)}`;
  const { images } = await new ServiceClient(session, 'image', region).get<{
    images: readonly { id: string; name: string }[];
  }>('listing images', path, signal);
  const [first, second] = images.filter((image) => image.name === name);
  const at = 'providerSpec.spec.imageName';
  if (first === undefined) throw new DriverError('Internal', `${at}: there is no image ${name}`);
  if (second !== undefined)
    throw new DriverError('Internal', `${at}: several images have the name ${name}, use imageID or remove the others`);
  return first.id;
}
