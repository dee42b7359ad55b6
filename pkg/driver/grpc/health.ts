import { on, EventEmitter } from 'node:events';

import { ServerError, Status, type CallContext, type ServiceImplementation } from 'nice-grpc';

import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  type HealthDefinition,
} from './gen/grpc/health/v1/health.ts';
import { DriverServiceDefinition } from './gen/machine/driver/v1/driver.ts';

/** Names whose health is told: the server as a whole, and the driver service. */
const SERVICES = ['', DriverServiceDefinition.fullName];

/** grpc.health.v1 for a driver: serving from the start until it stops. */
export class HealthService implements ServiceImplementation<HealthDefinition> {
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #status: ServingStatus = ServingStatus.SERVING;

  /** From now on calls may be refused; watchers are told. */
  stop(): void {
    this.#status = ServingStatus.NOT_SERVING;
    this.#changes.emit('change');
  }

  async check(request: HealthCheckRequest): Promise<HealthCheckResponse> {
    if (!SERVICES.includes(request.service)) throw new ServerError(Status.NOT_FOUND, `no service ${request.service}`);
    return await Promise.resolve({ status: this.#status });
  }

  async *watch(request: HealthCheckRequest, context: CallContext): AsyncGenerator<HealthCheckResponse> {
    const isKnown = SERVICES.includes(request.service);
    const changes = on(this.#changes, 'change', { signal: context.signal });
    yield { status: isKnown ? this.#status : ServingStatus.SERVICE_UNKNOWN };
    for await (const _change of changes) {
      if (isKnown) yield { status: this.#status };
    }
  }
}
