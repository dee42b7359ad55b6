import { runIronCoreDriver } from './ironcore-driver.ts';

await runIronCoreDriver(process.argv.slice(2));
