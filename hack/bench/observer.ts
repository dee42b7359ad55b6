import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import type { Connection } from '../control-plane/connection.ts';
import { fixedEndpoint } from '../control-plane/fixed-endpoint.ts';

/** The way to a control plane of who observes what the measured programs do there. */
export function observerOf({ url, ca, admin }: Pick<Connection, 'url' | 'ca' | 'admin'>): Transport {
  return new Transport({
    endpoint: fixedEndpoint(url, { tls: { ca, cert: admin.certificate, key: admin.key } }),
    clock: new SystemClock(),
    userAgent: 'bench',
  });
}
