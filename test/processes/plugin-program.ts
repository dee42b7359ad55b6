import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { loadEndpoint } from '../../pkg/kube/client/config.ts';

/**
 * A process that asks for the credentials of a kubeconfig, whose plugin hangs, and ends when its standard input does. Its argument is the
 * kubeconfig.
 */
const [kubeconfig = ''] = process.argv.slice(2);
const endpoint = await loadEndpoint({ kubeconfig, clock: new SystemClock(), env: process.env });
void endpoint.credentials();
process.stdin.resume().once('end', () => process.exit(0));
