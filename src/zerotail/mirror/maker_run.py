"""`mirror run` with the engine `mm2`: one supervised process for each target, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread

from zerotail.core.topology import Flow
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.mirror.maker import MakerSettings, plan_properties
from zerotail.mirror.maker_process import Heard, MakerFiles, MakerProcess, Tell
from zerotail.mirror.note import NoteWriter
from zerotail.private import make_folder

_COPIES = 3


class MakerRun:
    """The processes of one mirror."""

    def __init__(
        self,
        flows: Sequence[Flow],
        clusters: Mapping[str, Cluster],
        state: Path,
        tell: Tell,
        settings: MakerSettings | None = None,
    ) -> None:
        self._writers = {flow.name: NoteWriter(state, flow.name, flow.engine) for flow in flows}
        self._folders: list[Path] = []
        self.processes: list[MakerProcess] = []
        targets = list(dict.fromkeys(flow.target for flow in flows))
        for target in targets:
            here = [flow for flow in flows if flow.target == target]
            _, brokers = Catalogue(clusters[target], target).partition_counts()
            wanted = settings or MakerSettings(min(_COPIES, brokers))
            folder = state / f"mm2-{flows[0].mirror}-{target}"
            make_folder(folder)
            (port,) = reserve_ports(1, folder)
            self._folders.append(folder)
            files = MakerFiles(folder, target, port)
            java = {name: cluster.for_java() for name, cluster in clusters.items()}
            files.write(plan_properties(here, java, wanted))
            self.processes.append(MakerProcess(files, tell, self._heard(here)))

    def run(self) -> int:
        """Keep them running until stopped."""
        threads = [Thread(target=process.run, name="mirrormaker") for process in self.processes]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return 0
        finally:
            for writer in self._writers.values():
                writer.close()
            for folder in self._folders:
                release_ports(folder)

    def stop(self) -> None:
        """End them."""
        for process in self.processes:
            process.stop()

    def _heard(self, flows: Sequence[Flow]) -> Heard:
        def heard(state: str, metrics: dict[str, float]) -> None:
            for flow in flows:
                self._writers[flow.name].measure(state, metrics)

        return heard
