document.getElementById("page").textContent = "LoCAL2 is here.";
