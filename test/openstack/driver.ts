import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { SystemClock } from '../../pkg/clock/system-clock.ts';
import type { DriverCall, MachineRequest } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { OpenStackDriver } from '../../pkg/drivers/openstack/driver.ts';
import { DEFAULT_SETTINGS, type OpenStackSettings } from '../../pkg/drivers/openstack/settings.ts';
import { silentLogger } from '../../pkg/log/logger.ts';
import { callOf as anyCallOf, requestOf, type SecretTexts } from '../drivers/requests.ts';
import type { Bed } from './bed.ts';
import { openStackClass, secretOf } from './requests.ts';

/** A driver that knows nothing of what another one has begun. */
export function newDriver(settings: Partial<OpenStackSettings> = {}): OpenStackDriver & AsyncDisposable {
  const driver = new OpenStackDriver({
    settings: { ...DEFAULT_SETTINGS, ...settings },
    clock: new SystemClock(),
    log: silentLogger,
  });
  return Object.assign(driver, { [Symbol.asyncDispose]: async () => await driver.close() });
}

/** Deletes a machine; none is deleted already. */
export async function removeMachine(driver: OpenStackDriver, request: MachineRequest, call: DriverCall): Promise<void> {
  try {
    await driver.deleteMachine(request, call);
  } catch (err) {
    if (!DriverError.hasCode(err, 'NotFound')) throw err;
  }
}

/** Travels with a call; hosts of tests are shared, so that it may take long. */
export function callOf(change: Partial<DriverCall> = {}): DriverCall {
  return anyCallOf({ timeoutMs: 120_000, ...change });
}

/** A request about a machine, of a class with changes and a Secret with changes. */
export function requestFor(
  bed: Bed,
  name: string,
  change: Readonly<Record<string, unknown>> = {},
  options: { readonly secret?: SecretTexts; readonly providerID?: string; readonly machineClass?: MachineClass } = {},
): MachineRequest {
  const { secret = {}, machineClass = openStackClass(bed, change), providerID } = options;
  return requestOf(name, machineClass, {
    secret: secretOf(bed, secret),
    userData: '#cloud-config\n',
    ...(providerID === undefined ? {} : { providerID }),
  });
}
