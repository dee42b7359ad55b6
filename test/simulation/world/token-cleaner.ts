import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import type { VirtualTime } from './virtual-clock.ts';

const TOKEN = 'bootstrap.kubernetes.io/token';

/** Runs the token cleaner of kube-controller-manager: bootstrap tokens go when they have expired. */
export function cleanTokens(server: SimulatedAPIServer, time: VirtualTime): void {
  const follow = (object: StoredObject): void => {
    if (object['type'] !== TOKEN) return;
    time.schedule(expirationOf(object) - time.epochMs, () => {
      const { name, uid, resourceVersion } = object.metadata;
      const body = { preconditions: { uid, resourceVersion } };
      server.handle({ method: 'DELETE', path: `/api/v1/namespaces/kube-system/secrets/${name}`, body });
    });
  };
  server.objects.onChange(({ plural }, { type, object }) => {
    if (plural === 'secrets' && type !== 'DELETED') follow(object);
  });
  server.objects.onRestore(() => {
    for (const kind of server.kinds.filter(({ plural }) => plural === 'secrets')) {
      for (const object of server.objects.of(kind).list()) follow(object);
    }
  });
}

function expirationOf({ data }: StoredObject): number {
  const { expiration = '' } = (data ?? {}) as { readonly expiration?: string };
  return Date.parse(Buffer.from(expiration, 'base64').toString());
}
