export { serveDriver, type DriverContext, type DriverProgram } from '../../pkg/drivers/serve-driver.ts';
export type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineOrStub,
  MachineRequest,
  VirtualMachine,
} from '../../pkg/driver/driver.ts';
export { DriverError, type DriverCode } from '../../pkg/driver/error.ts';
export {
  isVMOf,
  machineOf,
  notFound,
  onlyOne,
  requireMachineName,
  type MachineIdentity,
  type TaggedVM,
} from '../../pkg/drivers/machine-identity.ts';
