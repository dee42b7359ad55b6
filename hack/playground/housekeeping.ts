import type { SimulatedAPIServer } from '../../test/simulation/api-server/api-server.ts';
import type { StoredObject } from '../../test/simulation/api-server/stored-object.ts';
import type { VirtualTime } from '../../test/simulation/world/virtual-clock.ts';

const EVERY_MS = 5 * 60_000;
const EVENT_LIFE_MS = 60 * 60_000;

/** Keeps a server that runs for days as small as a real one: old Events go, and so does what objects were before. */
export function startHousekeeping({ kinds, objects }: SimulatedAPIServer, time: VirtualTime): void {
  const events = kinds.find(({ plural }) => plural === 'events');
  const isOld = ({ metadata }: StoredObject): boolean =>
    time.epochMs - Date.parse(metadata.creationTimestamp) > EVENT_LIFE_MS;
  const each = (): void => {
    if (events !== undefined) {
      for (const event of objects.of(events).list().filter(isOld)) objects.remove(events, event);
    }
    objects.compact();
    time.schedule(EVERY_MS, each);
  };
  time.schedule(EVERY_MS, each);
}
