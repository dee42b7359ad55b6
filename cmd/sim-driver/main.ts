import { runSimDriver } from './sim-driver.ts';

await runSimDriver(process.argv.slice(2));
