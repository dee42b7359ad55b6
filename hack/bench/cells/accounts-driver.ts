import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineRequest,
  VirtualMachine,
} from '../../../pkg/driver/driver.ts';
import { DriverError } from '../../../pkg/driver/error.ts';

type Call = Pick<MachineRequest, 'secretData'>;

/** Key of the Secret of a class that names the account. */
export const ACCOUNT = 'account';

/** One driver of many accounts, as that of a provider is: the credentials of each call say which. */
export class AccountsDriver implements Driver {
  readonly #accounts: ReadonlyMap<string, Driver>;
  readonly #created: (account: string, machine: string) => void;

  /** `created` is told of each VM before it is answered. */
  constructor(accounts: ReadonlyMap<string, Driver>, created: (account: string, machine: string) => void) {
    this.#accounts = accounts;
    this.#created = created;
  }

  async capabilities(signal: AbortSignal): Promise<Capabilities> {
    return await this.#any().capabilities(signal);
  }

  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const vm = await this.#of(request).createMachine(request, call);
    this.#created(accountOf(request), request.machine.metadata.name);
    return vm;
  }

  async initializeMachine(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    return await this.#of(request).initializeMachine(request, call);
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    return await this.#of(request).getMachineStatus(request, call);
  }

  async deleteMachine(
    request: MachineRequest,
    call: DriverCall,
  ): Promise<{ readonly lastKnownState: string | undefined }> {
    return await this.#of(request).deleteMachine(request, call);
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    return await this.#of(request).listMachines(request, call);
  }

  async getVolumeIDs(pvSpecs: readonly unknown[], call: DriverCall): Promise<readonly string[]> {
    return await this.#any().getVolumeIDs(pvSpecs, call);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#accounts.values()].map((driver) => driver.close()));
  }

  #of(call: Call): Driver {
    const account = accountOf(call);
    const driver = this.#accounts.get(account);
    if (driver === undefined) throw new DriverError('InvalidArgument', `there is no account ${account}`);
    return driver;
  }

  #any(): Driver {
    const [driver] = this.#accounts.values();
    if (driver === undefined) throw new DriverError('Unavailable', 'there is no account yet');
    return driver;
  }
}

function accountOf({ secretData }: Call): string {
  return new TextDecoder().decode(secretData[ACCOUNT]);
}
