/** IronCore's own programs that tests run, by the packages that they are built from. */
export const IRONCORE_PROGRAMS = {
  'ironcore-apiserver': './cmd/ironcore-apiserver',
  'ironcore-controller-manager': './cmd/ironcore-controller-manager',
  machinebroker: './broker/machinebroker/cmd/machinebroker',
  machinepoollet: './poollet/machinepoollet/cmd/machinepoollet',
} as const;

export type IronCoreProgram = keyof typeof IRONCORE_PROGRAMS;

/** The folder where they are, for the tests. */
export const PROGRAMS_VARIABLE = 'MACHINIST_TEST_IRONCORE';
